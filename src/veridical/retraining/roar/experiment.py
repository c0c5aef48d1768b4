"""What a benchmark works on: its data and settings as they lie in its folder, and a classifier to train on them.

spec.json       data, model, training; a folder is of one such spec, and holds any seeds, measures and steps
data.parquet    the texts: workers need nothing else of where they came from
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from veridical.core import store, stored
from veridical.core.device import device_of, said_device
from veridical.core.errors import InputError
from veridical.core.records import Dataset, Encoded, Example, Given
from veridical.core.settings import build
from veridical.data import load_data
from veridical.model.accuracy import targets
from veridical.model.classifier import Classifier
from veridical.model.load import create
from veridical.model.memory import move
from veridical.model.names import from_record, recorded, same_record
from veridical.retraining.options import Rounding
from veridical.retraining.roar.settings import training, with_width
from veridical.training.config import TrainConfig

SPLITS = ("train", "dev", "test")


@dataclasses.dataclass(frozen=True)
class OneModel:
    """Of a benchmark that retrains nothing."""

    ratio: float  # the largest share of a text that the model was trained on masked
    forced: bool  # none, and its curves were asked for all the same


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What every cell of a benchmark shares."""

    folder: Path
    data: Dataset
    model: str
    config: TrainConfig
    rounding: Rounding
    one_model: OneModel | None = None  # None: every point is a model of its own

    @property
    def spec(self) -> dict[str, Any]:
        """What a folder is of."""
        texts = {split: store.stable_hash(self.data.splits[split]) for split in SPLITS}
        about = {"name": self.data.name, "labels": self.data.labels, "texts": texts}
        spec = {"data": about, "model": self.model, "train": self.config, "rounding": self.rounding}
        return {"roar": spec if self.one_model is None else {**spec, "train": {}, "one_model": self.one_model}}


@dataclasses.dataclass(frozen=True)
class Bench:
    """A classifier of one seed with its first weights, and the texts as it reads them: encoded once."""

    experiment: Experiment
    seed: int
    clf: Classifier
    first: dict[str, torch.Tensor]  # every training starts from these
    encoded: dict[str, list[Encoded]]
    gold: dict[str, torch.Tensor]
    mask: int

    @property
    def place(self) -> Path:
        return self.experiment.folder / f"seed{self.seed}"

    @property
    def threads(self) -> int:
        return self.experiment.config.threads or 1

    @property
    def filler(self) -> int:
        """A token that stands for no word: the unknown one, or where there is none the commonest."""
        unknown = getattr(self.clf.tokenizer, "unk_token_id", None)
        if unknown is not None:
            return int(unknown)
        ids = torch.tensor([i for e in self.encoded["train"] for i, free in zip(e.ids, e.free, strict=True) if free])
        return int(ids.bincount().argmax())


def asked(
    out: str | Path,
    data: Given | Path,
    model: str,
    *,
    config: TrainConfig | Mapping[str, Any] | None,
    limit: int | None,
    rounding: Rounding,
) -> Experiment:
    """This data, model and training for a folder that is new or of them already; nothing is written. `config` may be a
    table of settings on top of the model's own."""
    if limit is not None and not isinstance(data, (str, Path)):
        raise InputError(f"limit={limit} applies to data that is loaded by name; give the Dataset fewer examples.")
    dataset = load_data(data, limit=limit)
    _check(dataset)
    model = _spelled(Path(out), recorded(with_width(model, dataset)))
    if not isinstance(config, TrainConfig):
        config = build(TrainConfig, config or {}, base=training(model, dataset), where="train")
    experiment = Experiment(Path(out), dataset, model, config, rounding)
    store.claim(experiment.folder, experiment.spec)
    return experiment


def _spelled(folder: Path, model: str) -> str:
    """The model as this folder spells it, if it is the same: folders of before do not say a width of 128."""
    path = folder / "spec.json"
    held = str(stored.read_fields(path).get("roar", {}).get("model", "")) if path.exists() else ""
    return held if same_record(held, model) else model


def begin(experiment: Experiment) -> None:
    """Claim the folder and put the texts into it, for the workers."""
    store.claim(experiment.folder, experiment.spec)
    for name, write in (
        ("spec.json", lambda path: store.write_json(path, experiment.spec)),  # first: it is what makes the folder ours
        ("data.parquet", lambda path: store.write_parquet(path, _columns(experiment.data))),
        ("stamp.json", lambda path: store.write_json(path, store.stamp(threads=experiment.config.threads))),
    ):
        if not (experiment.folder / name).exists():
            write(experiment.folder / name)


def _check(data: Dataset) -> None:
    if data.multilabel:
        raise InputError(f"{data.name} has several labels per text; ROAR explains the gold class, so it needs one.")
    for split in SPLITS:
        check_split(data, split, ", ".join(SPLITS[:-1]) + " and test")


def check_split(data: Dataset, split: str, needed: str = "test") -> None:
    """Refuse data that lacks a split, or labels in it."""
    examples = data.splits.get(split)
    if not examples:
        has = ", ".join(data.splits) or "none"
        raise InputError(
            f"{data.name} has no {split} split (has {has}); ROAR needs {needed}, which a column `split` "
            "or the keys of a dict may name."
        )
    for example in examples:
        if not isinstance(example.label, int) or not 0 <= example.label < len(data.labels):
            raise InputError(
                f"Example {example.id!r} of the {split} split of {data.name} has the label {example.label!r}; "
                f"every text needs one of the classes 0 to {len(data.labels) - 1}."
            )


def _columns(data: Dataset) -> dict[str, list[Any]]:
    rows = [(split, example) for split in SPLITS for example in data.splits[split]]
    return {
        "split": [split for split, _ in rows],
        "id": [e.id for _, e in rows],
        "text": [e.text for _, e in rows],
        "label": [e.label for _, e in rows],
        "context": [e.context for _, e in rows],
        "rationale": [[edge for span in e.rationale for edge in span] for _, e in rows],
    }


def read_experiment(folder: str | Path) -> Experiment:
    """What `begin` put into a folder."""
    folder = Path(folder)
    spec = stored.read_fields(folder / "spec.json", "roar")["roar"]
    splits: dict[str, list[Example]] = {split: [] for split in SPLITS}
    for row in store.read_parquet(folder / "data.parquet").to_pylist():
        edges = row["rationale"]
        spans = tuple(zip(edges[::2], edges[1::2], strict=True))
        splits[row["split"]].append(Example(row["id"], row["text"], row["label"], row["context"], spans))
    named = spec["data"]
    data = Dataset(named["name"], tuple(named["labels"]), {split: tuple(rows) for split, rows in splits.items()})
    one_model = OneModel(**spec["one_model"]) if "one_model" in spec else None
    return Experiment(folder, data, spec["model"], build(TrainConfig, spec["train"]), spec["rounding"], one_model)


def read_bench(folder: str | Path, seed: int) -> Bench:
    """A classifier of one seed, ready to be trained; the cells of a worker that share a seed share it."""
    folder = Path(folder)
    return _bench(folder, seed, store.stable_hash(store.read_json(folder / "spec.json")))


@lru_cache(maxsize=1)
def _bench(folder: Path, seed: int, spec: str) -> Bench:
    return make_bench(read_experiment(folder), seed)


def make_bench(experiment: Experiment, seed: int) -> Bench:
    if experiment.config.lora is not None:
        raise InputError(f"lora is {experiment.config.lora}, but ROAR trains all weights; leave lora out.")
    how = {"max_length": experiment.config.max_length, "dropout": experiment.config.dropout}
    clf = create(from_record(experiment.model), experiment.data, seed=seed, **how)
    move(clf, said_device() or device_of())
    mask = getattr(clf.tokenizer, "mask_token_id", None)
    if mask is None:
        raise InputError(
            f"The tokenizer of {experiment.model!r} has no mask token, and ROAR masks; take another model."
        )
    return Bench(
        experiment=experiment,
        seed=seed,
        clf=clf,
        first={name: tensor.detach().cpu().clone() for name, tensor in clf.model.state_dict().items()},
        encoded={split: clf.encode(experiment.data.splits[split]) for split in SPLITS},
        gold={split: targets(experiment.data.splits[split], experiment.data.labels, False) for split in SPLITS},
        mask=int(mask),
    )
