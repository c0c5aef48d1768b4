"""A model as the playground holds it: under a short name, once for each of the threads that explain and once for the
one that answers, all with the same weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from veridical.core.records import Operator
from veridical.model.classifier import Classifier
from veridical.playground.twin import twin


@dataclass(frozen=True)
class Served:
    """A model. What was given stays as it is: others may be using it."""

    name: str
    path: str
    explains: Classifier
    quick: Classifier  # explains, too: what takes little, beside what takes long
    answers: Classifier

    @property
    def labels(self) -> tuple[str, ...]:
        return self.answers.labels

    @property
    def multi_label(self) -> bool:
        return self.answers.kind == "multi"

    @property
    def mask_id(self) -> int | None:
        return getattr(self.answers.tokenizer, "mask_token_id", None)

    @property
    def operators(self) -> list[Operator]:
        return ["delete", *(["mask"] if self.mask_id is not None else []), "attention"]

    @property
    def pairs(self) -> bool:
        """Whether it can read a context: a BiLSTM is built for it or not."""
        return bool(getattr(self.answers.model.config, "pair", True))

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.answers.model.parameters())

    @property
    def bytes(self) -> int:
        """Memory of its weights, which it has once."""
        held = (*self.answers.model.parameters(), *self.answers.model.buffers())
        return sum(tensor.numel() * tensor.element_size() for tensor in held)

    @cached_property
    def weights(self) -> str:
        """A hash of the weights, by which an audit knows its model."""
        return self.answers.fingerprint()


def served(classifiers: Sequence[Classifier]) -> list[Served]:
    """Models under names that tell them apart."""
    names: list[str] = []
    for clf in classifiers:
        name = _short(clf.name)
        same = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({same + 1})" if same else name)
    return [
        Served(name, clf.name, twin(clf), twin(clf), twin(clf)) for name, clf in zip(names, classifiers, strict=True)
    ]


def _short(name: str) -> str:
    """The last two parts of a path; `runs/movies/run` is better known as `movies/run` than as `run`."""
    return "/".join(PurePath(name).parts[-2:]) or name
