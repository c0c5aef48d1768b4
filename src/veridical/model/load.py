"""From a name, a folder, a model or a pipeline to a `Classifier`. Safetensors only, no remote code."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from veridical.core.device import device_of, said_device
from veridical.core.errors import Caution, InputError
from veridical.core.readable import insist_on_characters, shown
from veridical.core.records import Dataset
from veridical.core.registry import resolve
from veridical.core.spec import read_place
from veridical.core.values import read
from veridical.model.classifier import Classifier
from veridical.model.embedded import folder_of
from veridical.model.head import fit_head
from veridical.model.lora import with_folded_adapters
from veridical.model.memory import move
from veridical.model.names import ENCODERS, insist_on_model
from veridical.model.padding import with_pad_token
from veridical.model.pretrained import read_config, read_model, refusing
from veridical.model.prompted import prompted
from veridical.model.sound import (
    attending_fully,
    in_float32,
    insist_on_finite,
    insist_on_fit,
    insist_on_floats,
    insist_on_vocabulary,
    with_full_attention,
)
from veridical.model.template import insist_on_prompt


def load(
    source: Any,
    tokenizer: Any = None,
    *,
    labels: Sequence[str] | Mapping[str, str] | None = None,
    prompt: str | None = None,
    chat: bool = False,
    multilabel: bool = False,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> Classifier:
    """Load a classifier, with its tokenizer. Weights are read from safetensors files only, and no remote code is run.

    Args:
        source: A model's folder, a run's folder, a hub id, an embedded model (`minilm`, `mpnet`, `smollm2`), a
            transformers model, or a `pipeline("text-classification")`. Behind a name `:layers=3` keeps the first three
            layers, and `:head=tanh` gives BigBird the head of explanation regularisation.
        tokenizer: The tokenizer of a model that is given as an object; a fast one.
        labels: Names of classes, for which the model gets a new head that is not trained, unless its head is of these
            classes. Of a folder or hub id only.
            With a prompt: the word that stands for each class, as it follows the prompt, space included.
        prompt: Make a classifier of a causal language model: a text in which `{text}` stands once. The classes are the
            words of `labels`, each one token; only the text is explained and erased.
        chat: Whether the prompt is a user's turn in the model's chat template.
        multilabel: Whether a text may have several of these classes.
        seed: The seed that the new head is drawn from.
        device: Where the model runs: cpu, cuda, cuda:1, mps, or auto, which takes the accelerator that there is, else
            the CPU. Default: what the variable VERIDICAL_DEVICE says, else auto; a model that is given as an object
            stays where it is.

    Returns:
        What every other verb takes. Its classes are `.labels`.

    Example:
        >>> clf = veridical.load("runs/mine")
        >>> clf = veridical.load(model, tokenizer)
        >>> words = {"negative": " negative", "positive": " positive"}
        >>> clf = veridical.load("smollm2", prompt="Review:\\n{text}\\nSentiment:", labels=words)
    """
    where = said_device() if device is None else device_of(device)  # before anything is loaded
    asked = _prompt_of(source, prompt, labels, chat)
    if asked is not None and multilabel:
        raise InputError("A prompt asks for one word, so a text has one class; leave multilabel out.")
    if labels is not None and asked is None:
        _insist_on_names(source, labels)
    if hasattr(source, "model") and hasattr(source, "tokenizer"):  # a pipeline, or a Classifier
        source, tokenizer = source.model, tokenizer or source.tokenizer
    if isinstance(source, torch.nn.Module):
        if tokenizer is None:
            raise InputError("A model given as an object needs its tokenizer too: load(model, tokenizer).")
        clf = Classifier(attending_fully(in_float32(with_folded_adapters(source))), tokenizer)
        with_pad_token(clf.model, tokenizer)
        insist_on_finite(clf.model, clf.name)
        insist_on_vocabulary(clf.model, tokenizer, clf.name)
    elif isinstance(source, (str, Path)):
        names = None if labels is None else list(labels)
        clf, where = _from_files(str(source), names, multilabel, seed, prompt=asked), where or device_of()
    else:
        raise InputError(
            f"load takes a folder, a hub id, a model with its tokenizer or a pipeline; {shown(source)} is none of them."
        )
    return _placed(clf, where)


@dataclass(frozen=True)
class _Prompt:
    """What makes a classifier of a language model."""

    prompt: str
    labels: Mapping[str, str]
    chat: bool


def _prompt_of(source: Any, prompt: Any, labels: Any, chat: bool) -> _Prompt | None:
    if prompt is None:
        if chat:
            raise InputError("chat is of a prompt; give prompt='...{text}...' too, or leave chat out.")
        return None
    insist_on_prompt(prompt, labels, chat=chat)
    if not isinstance(source, (str, Path)):
        raise InputError("prompt makes a classifier of a model from a folder or the hub; name it instead.")
    return _Prompt(prompt, labels, chat)


def _insist_on_names(source: Any, labels: Any) -> None:
    """Refuse classes that no answer could be told by, and those for a head that is there."""
    if not isinstance(source, (str, Path)):
        raise InputError("labels gives a new head to a model from a folder or the hub; this one has its own.")
    named = isinstance(labels, (list, tuple)) and all(isinstance(name, str) and name.strip() for name in labels)
    if not named or not labels or len(set(labels)) < len(labels):
        raise InputError(f"labels is {shown(labels)}; it must be a list with the name of every class, each once.")
    for name in labels:
        insist_on_characters(name, "A class in labels")


def classifier_of(given: Any) -> Classifier:
    """A classifier as it is, or loaded: on the device that was asked for, if one was."""
    if not isinstance(given, Classifier):
        return load(given)
    device = said_device()
    if device is not None:
        move(given, device)
    return given


def create(
    spec: str, data: Dataset, *, seed: int, max_length: int | None = None, dropout: float | None = None
) -> Classifier:
    """A fresh classifier for the labels of `data`, to be trained: an encoder with a new head, or `bilstm` with
    the vocabulary of the training split. It reads at most `max_length` tokens and drops out `dropout`, if given. It is
    on the CPU: whoever trains it knows where."""
    clf = _created(spec, data, seed, dropout)
    if max_length is not None:
        clf.read_at_most(max_length)
    return clf


def _created(spec: str, data: Dataset, seed: int, dropout: float | None) -> Classifier:
    typed = read_place(spec)
    name, given = typed.name, typed.options
    if name == "bilstm":
        if dropout is not None:
            raise InputError(f"dropout is {dropout:g}, but 'bilstm' has no dropout to set; leave it out.")
        from veridical.model import bilstm

        for taken in {"seed", "multilabel"} & set(given):
            raise InputError(f"'bilstm' takes {taken!r} from the training, not from {spec!r}; leave it out there.")
        from_training = {"multilabel": data.multilabel, "seed": seed}
        settings = resolve(bilstm.build, {**given, **from_training}, "model 'bilstm'")
        model, tokenizer = bilstm.build(data.splits["train"], data.labels, **settings)
        return Classifier(model, tokenizer, name=spec)
    return _placed(_from_files(spec, data.labels, data.multilabel, seed, dropout), None)


def _placed(clf: Classifier, device: torch.device | None) -> Classifier:
    if device is not None:
        move(clf, device)
    clf.model.eval()
    return clf


def _from_files(
    spec: str,
    labels: Sequence[str] | None,
    multilabel: bool,
    seed: int,
    dropout: float | None = None,
    prompt: _Prompt | None = None,
) -> Classifier:
    given = read_place(spec).options
    where = insist_on_model(spec, start=labels is not None or prompt is not None)
    if where in ENCODERS:
        where = str(folder_of(where))
    with refusing(spec):
        config = read_config(where, spec)
        before = [name for _, name in sorted((config.id2label or {}).items())]
        if prompt is not None and getattr(config, "veridical_prompt", None):
            raise InputError(
                f"{spec!r} has a prompt already ({shown(config.veridical_prompt['prompt'])}), inside which another "
                "would stand; name the language model that it was made of."
            )
        config = _configured(config, spec, labels, multilabel, dropout)
        if not hasattr(config, "quantization_config"):
            insist_on_floats(where, spec)
        model, tokenizer, info = read_model(where, config, seed)
    insist_on_fit(model, info, spec, new_head=labels is not None, shortened="layers" in given)
    insist_on_vocabulary(model, tokenizer, repr(spec))
    with_pad_token(model, tokenizer)
    insist_on_finite(model, repr(spec))
    if prompt is not None:
        return prompted(where, model, tokenizer, spec, prompt.prompt, prompt.labels, chat=prompt.chat)
    untrained = bool(info["missing_keys"]) or bool(info.get("mismatched_keys"))
    if labels is not None and not untrained:
        untrained = not fit_head(model, before, labels, seed)
    if untrained and labels is None:
        warnings.warn(
            f"{spec} has no trained classification head (missing: {', '.join(sorted(info['missing_keys'])[:3])}); "
            "train it first, its predictions mean nothing.",
            Caution,
            stacklevel=3,
        )
    return Classifier(model, tokenizer, name=spec, trained=not untrained)


def _configured(config: Any, spec: str, labels: Sequence[str] | None, multilabel: bool, dropout: float | None) -> Any:
    """The configuration with what the spec and the caller ask for."""
    typed = read_place(spec)
    source, given = typed.name, typed.options
    if labels is not None:
        config.num_labels = len(labels)
        config.id2label = dict(enumerate(labels))
        config.label2id = {name: i for i, name in enumerate(labels)}
        config.problem_type = "multi_label_classification" if multilabel else "single_label_classification"
    if "layers" in given:
        _shorten(config, read(given["layers"], int, f"layers of {source!r}"))
    if dropout is not None:
        _set_dropout(config, dropout, spec)
    if "head" in given:
        config = _with_head(config, given["head"], spec)
    if hasattr(config, "reference_compile"):
        config.reference_compile = False  # ModernBERT would compile itself, and again for every length
    with_full_attention(config, spec)
    return config


def _shorten(config: Any, layers: int) -> None:
    total = config.num_hidden_layers
    if not 1 <= layers <= total:
        raise InputError(f"layers={layers} is out of range; this encoder has layers 1 to {total}.")
    config.num_hidden_layers = layers


def _with_head(config: Any, head: str, spec: str) -> Any:
    from veridical.model.tanh_head import TanhHeadConfig, with_tanh_head

    if head != "tanh" or config.model_type not in ("big_bird", TanhHeadConfig.model_type):
        raise InputError(f"{spec!r} asks for the head {head!r}; the one there is to choose is head=tanh, of BigBird.")
    return config if isinstance(config, TanhHeadConfig) else with_tanh_head(config)


def _set_dropout(config: Any, dropout: float, spec: str) -> None:
    """All of a family's dropouts, whatever it calls them; what drops whole layers is none of them."""
    settings = config.to_dict().items()
    names = [name for name, value in settings if "dropout" in name and (value is None or isinstance(value, float))]
    if not names:
        raise InputError(f"dropout is {dropout:g}, but {spec!r} has no dropout to set; leave it out.")
    for name in names:
        setattr(config, name, dropout)
