"""Loss terms: one file each. An objective is cross-entropy plus a weighted sum of terms.

A term is a function `(clf, batch, output, labels, *, options) -> loss`, the *sum* over the batch's examples.
The loop divides by the size of the global batch, so the number of processes or passes does not change a
loss. `labels` are the gold ones: class indices [B], or 0/1 [B, C] for multi-label heads; all else about an
example hangs on `batch.encoded`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import torch

from veridical.errors import InputError
from veridical.registry import Choice, Registry, read

Need = Literal["attention", "hidden"]


@dataclass(frozen=True, slots=True)
class Term:
    """A named loss. `needs`: what `output` must hold. `second_order`: it differentiates a gradient."""

    name: str
    run: Callable[..., torch.Tensor]
    needs: frozenset[Need] = frozenset()
    second_order: bool = False

    @property
    def eager(self) -> bool:
        """Fused attention returns no weights, and on a CPU has no second derivative."""
        return self.second_order or "attention" in self.needs


terms: Registry[Term] = Registry("term", "veridical.term")


def term(name: str, *, needs: Iterable[Need] = (), second_order: bool = False) -> Callable[..., Callable]:
    """Register the decorated function as a loss term."""

    def register(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        terms.add(Term(name, function, frozenset(needs), second_order))
        return function

    return register


@dataclass(frozen=True)
class Weighted:
    """A term with its options resolved, and its weight in the sum."""

    choice: Choice[Term]
    weight: float

    @property
    def label(self) -> str:
        name, colon, options = self.choice.label.partition(":")
        weight = "" if self.weight == 1 else f":weight={self.weight:g}"
        return f"{name}{weight}{colon}{options}"


Objective = tuple[Weighted, ...]


def objective(spec: str) -> Objective:
    """`a:weight=1,b:weight=0.01` as terms; cross-entropy comes first, with weight 1 unless it is named."""
    chosen: list[Weighted] = []
    for part in filter(None, (part.strip() for part in spec.split(","))):
        name, *options = part.split(":")
        weights = [option.partition("=")[2] for option in options if option.partition("=")[0] == "weight"]
        rest = [option for option in options if option.partition("=")[0] != "weight"]
        weight = read(weights[-1], float, f"the weight of term {name!r}") if weights else 1.0
        if not 0 <= weight < float("inf"):
            raise InputError(f"The weight of term {name!r} is {weight:g}; it must be 0 or more, and finite.")
        if any(one.choice.entry.name == name for one in chosen):
            raise InputError(f"Term {name!r} is named twice in {spec!r}; name it once.")
        chosen.append(Weighted(terms.choose(":".join([name, *rest])), weight))
    if all(one.choice.entry.name != "cross_entropy" for one in chosen):
        chosen.insert(0, Weighted(terms.choose("cross_entropy"), 1.0))
    return tuple(sorted(chosen, key=lambda one: one.choice.entry.name != "cross_entropy"))


def label(chosen: Objective) -> str:
    """The shortest spec of an objective: plain cross-entropy is left out beside other terms."""
    shown = [one.label for one in chosen]
    return ",".join(shown[1:] if shown[0] == "cross_entropy" and len(shown) > 1 else shown)
