"""From a name, a folder, a model or a pipeline to a `Classifier`. Safetensors only, no remote code."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from veridical.core import assets
from veridical.core.errors import Caution, InputError
from veridical.core.records import Dataset
from veridical.core.registry import resolve
from veridical.core.spec import Spec
from veridical.core.values import read
from veridical.model.classifier import Classifier

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
    `:layers=3` behind a name keeps the first three layers."""
    if hasattr(source, "model") and hasattr(source, "tokenizer"):  # a pipeline, or a Classifier
        source, tokenizer = source.model, tokenizer or source.tokenizer
    if isinstance(source, torch.nn.Module):
        if tokenizer is None:
            raise InputError("A model given as an object needs its tokenizer too: load(model, tokenizer).")
        clf = Classifier(source, tokenizer)
    else:
        clf = _from_files(str(source), labels, multilabel, seed)
    if device is None and torch.cuda.is_available():
        device = "cuda"
    if device is not None:
        clf.model.to(device)
    clf.model.eval()
    return clf


def create(spec: str, data: Dataset, *, seed: int) -> Classifier:
    """A fresh classifier for the labels of `data`, to be trained: an encoder with a new head, or `bilstm` with
    the vocabulary of the training split."""
    name, options = _options(spec)
    if name == "bilstm":
        from veridical.model import bilstm

        for taken in {"seed", "multilabel"} & set(options):
            raise InputError(f"'bilstm' takes {taken!r} from the training, not from {spec!r}; leave it out there.")
        own = {"multilabel": data.multilabel, "seed": seed}
        given = resolve(bilstm.build, {**options, **own}, "model 'bilstm'")
        model, tokenizer = bilstm.build(data.splits["train"], data.labels, **given)
        return Classifier(model, tokenizer, name=spec)
    return load(spec, labels=data.labels, multilabel=data.multilabel, seed=seed)


def _options(spec: str) -> tuple[str, Mapping[str, str]]:
    """The name or path in a model's spec, which may hold colons if it exists, and its options."""
    if Path(spec).exists():
        return spec, {}
    typed = Spec.read(spec)
    _, trailing = typed.head
    if trailing and not Path(typed.name).exists():
        raise InputError(f"{trailing!r} in the model {spec!r} is not option=value; write it as name:layers=3.")
    return typed.name, typed.options


def _from_files(spec: str, labels: Sequence[str] | None, multilabel: bool, seed: int) -> Classifier:
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    from veridical.model import bilstm  # noqa: F401  registers the BiLSTM with the Auto classes

    source, options = _options(spec)
    unknown = set(options) - {"layers"}
    if unknown:
        raise InputError(f"The model {spec!r} has no option {sorted(unknown)[0]!r}; the one there is: layers.")
    if source == "bilstm":
        raise InputError("'bilstm' is built from training texts; train one first, then name its run folder.")
    where = _folder(source)
    try:
        config = AutoConfig.from_pretrained(where, trust_remote_code=False)
        if labels is not None:
            config.num_labels = len(labels)
            config.id2label = dict(enumerate(labels))
            config.label2id = {name: i for i, name in enumerate(labels)}
            config.problem_type = "multi_label_classification" if multilabel else "single_label_classification"
        if "layers" in options:
            _shorten(config, read(options["layers"], int, f"layers of {source!r}"))
        if hasattr(config, "reference_compile"):
            config.reference_compile = False  # ModernBERT would compile itself, and again for every length
        # A head that the files lack is drawn from the seed, and nobody else's random numbers move.
        with torch.random.fork_rng(devices=[]), _quietly():
            torch.manual_seed(seed)
            model, info = AutoModelForSequenceClassification.from_pretrained(
                where,
                config=config,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
                ignore_mismatched_sizes=labels is not None,
            )
        tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False)
    except (OSError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(
            f"No classifier could be loaded from {spec!r} ({_first_line(problem)}). Give a folder with config.json, "
            "model.safetensors and a tokenizer, a hub id, a run folder, or 'minilm'."
        ) from problem
    untrained = bool(info["missing_keys"]) or bool(info.get("mismatched_keys"))
    if untrained and labels is None:
        warnings.warn(
            f"{spec} has no trained classification head (missing: {', '.join(sorted(info['missing_keys'])[:3])}); "
            "train it first, its predictions mean nothing.",
            Caution,
            stacklevel=3,
        )
    return Classifier(model, tokenizer, name=spec, trained=not untrained)


def _folder(source: str) -> str:
    if source in ENCODERS:
        return str(assets.fetch(ENCODERS[source]))
    path = Path(source)
    if (path / "model" / "config.json").exists():  # a run folder
        return str(path / "model")
    if path.is_dir() and not (path / "config.json").exists():
        raise InputError(
            f"The folder {source!r} holds no model (no config.json, nor model/config.json as in a finished run); "
            "name a run folder whose training has ended and did not fail."
        )
    if not path.exists() and not HUB_ID.fullmatch(source):
        raise InputError(
            f"There is no folder {source!r}, and it is not the name of a model on the hub; check the path."
        )
    return source


@contextmanager
def _quietly() -> Iterator[None]:
    """Without transformers' bar and report on loading; what matters of it we say ourselves."""
    from transformers.utils import logging

    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()


def _shorten(config: Any, layers: int) -> None:
    total = config.num_hidden_layers
    if not 1 <= layers <= total:
        raise InputError(f"layers={layers} is out of range; this encoder has layers 1 to {total}.")
    config.num_hidden_layers = layers


def _first_line(problem: Exception) -> str:
    return str(problem).strip().splitlines()[0].rstrip(".") if str(problem).strip() else type(problem).__name__
