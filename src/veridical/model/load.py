"""From a name, a folder, a model or a pipeline to a `Classifier`. Safetensors only, no remote code."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from veridical.core.errors import Caution, InputError
from veridical.core.records import Dataset
from veridical.core.registry import resolve
from veridical.core.spec import read_place
from veridical.core.values import read
from veridical.model.classifier import Classifier
from veridical.model.pretrained import read_config, read_model, refusing
from veridical.model.sound import (
    attending_fully,
    in_float32,
    insist_on_finite,
    insist_on_fit,
    insist_on_floats,
    insist_on_vocabulary,
    with_full_attention,
)

HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
ENCODERS = {"minilm": "minilm"}  # names of embedded encoders -> their asset


def load(
    source: Any,
    tokenizer: Any = None,
    *,
    labels: Sequence[str] | None = None,
    multilabel: bool = False,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> Classifier:
    """A classifier from a hub id, a folder (a model's or a run's), `minilm`, a model with its tokenizer, or a
    `pipeline("text-classification")`. `labels` gives it a new head for those classes, initialised from `seed`;
    `:layers=3` behind a name keeps the first three layers, `:head=tanh` gives BigBird the head of explanation
    regularisation."""
    if hasattr(source, "model") and hasattr(source, "tokenizer"):  # a pipeline, or a Classifier
        source, tokenizer = source.model, tokenizer or source.tokenizer
    if isinstance(source, torch.nn.Module):
        if tokenizer is None:
            raise InputError("A model given as an object needs its tokenizer too: load(model, tokenizer).")
        clf = Classifier(attending_fully(in_float32(source)), tokenizer)
        insist_on_finite(clf.model, clf.name)
        insist_on_vocabulary(clf.model, tokenizer, clf.name)
    else:
        clf = _from_files(str(source), labels, multilabel, seed)
    return _placed(clf, device)


def create(
    spec: str, data: Dataset, *, seed: int, max_length: int | None = None, dropout: float | None = None
) -> Classifier:
    """A fresh classifier for the labels of `data`, to be trained: an encoder with a new head, or `bilstm` with
    the vocabulary of the training split. It reads at most `max_length` tokens and drops out `dropout`, if given."""
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


def _placed(clf: Classifier, device: str | torch.device | None) -> Classifier:
    if device is None and torch.cuda.is_available():
        device = "cuda"
    if device is not None:
        clf.model.to(device)
    clf.model.eval()
    return clf


def _from_files(
    spec: str, labels: Sequence[str] | None, multilabel: bool, seed: int, dropout: float | None = None
) -> Classifier:
    typed = read_place(spec)
    source, given = typed.name, typed.options
    unknown = set(given) - {"layers", "head"}
    if unknown:
        raise InputError(f"The model {spec!r} has no option {sorted(unknown)[0]!r}; there are layers and head.")
    if source == "bilstm":
        raise InputError("'bilstm' is built from training texts; train one first, then name its run folder.")
    where = _folder(source)
    with refusing(spec):
        config = _configured(read_config(where, spec), spec, labels, multilabel, dropout)
        if not hasattr(config, "quantization_config"):
            insist_on_floats(where, spec)
        model, tokenizer, info = read_model(where, config, seed)
    insist_on_fit(model, info, spec, new_head=labels is not None, shortened="layers" in given)
    insist_on_vocabulary(model, tokenizer, repr(spec))
    insist_on_finite(model, repr(spec))
    untrained = bool(info["missing_keys"]) or bool(info.get("mismatched_keys"))
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


def _folder(source: str) -> str:
    if source in ENCODERS:
        from veridical.core.assets import fetch

        return str(fetch(ENCODERS[source]))
    path = Path(source)
    if (path / "model" / "config.json").exists():  # a run folder
        return str(path / "model")
    if path.is_dir() and not (path / "config.json").exists():
        raise InputError(
            f"The folder {source!r} holds no model (no config.json, nor model/config.json as in a finished run); "
            "name a run folder whose training has ended and did not fail."
        )
    if path.is_file():
        raise InputError(f"{source!r} is a file; name the folder of the model, with its config.json and tokenizer.")
    if not path.exists() and not HUB_ID.fullmatch(source):
        raise InputError(
            f"There is no folder {source!r}, and it is not the name of a model on the hub; check the path."
        )
    return source


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
