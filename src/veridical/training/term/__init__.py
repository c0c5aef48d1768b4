"""Loss terms: one file each. An objective is cross-entropy plus a weighted sum of terms.

A term is a function `(clf, batch, output, labels, *, options) -> loss`, the *sum* over the batch's examples.
The loop divides by the size of the global batch, so the number of processes or passes does not change a
loss. `labels` are the gold ones: class indices [B], or 0/1 [B, C] for multi-label heads; all else about an
example hangs on `batch.encoded`. `output` is the loop's own pass, its graph alive and shared by all terms (so a
gradient taken from it retains it, as `clf.gradient` does while parameters train). A term may run the model again
with `clf.forward`, inside `clf.still()` where dropout is to be off. Terms are measured on the dev split too, there
with dropout off and nothing else changed.

What a term may have besides, each an argument of the decorator `term`:

needs         `output` holds attention weights or hidden states.
second_order  it differentiates a gradient, or something else that fused attention cannot do: it runs eager.
prepare       a function `(clf, encoded, labels, *, options) -> anything`, called once per run with the train
              split's encodings and gold labels; it must be deterministic, for a resumed run calls it again. What
              it returns is handed to the term and to `size` as `prepared`: a parameter *before* the star, for
              those after it are options.
draws         it draws random numbers, and is handed the step as `draw` (a `Draw`), a parameter before the star: seeds
              from it are anew in every step and the same for a step done again, whatever the batch or process.
size          a function `(encoded, labels, *, options) -> number`, by whose total over the examples of the global
              batch the sum is divided instead of their number (tokens, say). Where it is 0 in total the term adds
              nothing to the loss, and its value is none in the log.

`prepare` and `size` take any of the term's options, by name, and need not take the others.

Figures for the log: a term may return `(loss, {"flipped": sum over the batch's examples})`. They are divided by
the number of examples, whatever `size` says, and logged as `term.flipped` beside `term`.

An option that is itself a spec (a method, a prior) has `/` where the command line has `:`, which separates the
term's own options: `explanation:method=alti/layer=3`. `Spec.read(text, INSIDE)` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

from veridical.core.errors import InputError
from veridical.core.records import Batch, Encoded, Output
from veridical.core.registry import Choice, Registry, options_of, read
from veridical.core.seed import Draw
from veridical.core.spec import Spec, listed

if TYPE_CHECKING:
    from veridical.model.classifier import Classifier

Need = Literal["attention", "hidden"]
Figures = dict[str, torch.Tensor]

BASE = "cross_entropy"  # what every objective has, unless its weight is 0


@dataclass(frozen=True, slots=True)
class Term:
    """A named loss; the module's docstring says what its parts are."""

    name: str
    run: Callable[..., torch.Tensor | tuple[torch.Tensor, Figures]]
    needs: frozenset[Need] = frozenset()
    second_order: bool = False
    prepare: Callable[..., Any] | None = None
    size: Callable[..., float] | None = None
    draws: bool = False

    @property
    def eager(self) -> bool:
        """Fused attention returns no weights, and on a CPU has no second derivative."""
        return self.second_order or "attention" in self.needs


terms: Registry[Term] = Registry("term", "veridical.training.term", "term")


def term(
    name: str,
    *,
    needs: Iterable[Need] = (),
    second_order: bool = False,
    prepare: Callable[..., Any] | None = None,
    size: Callable[..., float] | None = None,
    draws: bool = False,
) -> Callable[..., Callable]:
    """Register the decorated function as a loss term."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        terms.add(Term(name, function, frozenset(needs), second_order, prepare, size, draws))
        return function

    return register


# -- objectives ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Weighted:
    """A term with its options resolved, and its weight in the sum."""

    choice: Choice[Term]
    weight: float

    @property
    def name(self) -> str:
        return self.choice.entry.name

    @property
    def label(self) -> str:
        weight = {} if self.weight == 1 else {"weight": f"{self.weight:g}"}
        return Spec(self.name, {**weight, **self.choice.spec.options}).write()


Objective = tuple[Weighted, ...]


def objective(spec: str) -> Objective:
    """`a:weight=1,b:weight=0.01` as terms; cross-entropy comes first, with weight 1 unless it is named."""
    chosen: list[Weighted] = []
    if not listed(spec):
        raise InputError(f"The objective is {spec!r}, so no term is named; name one, such as {BASE}, or leave it out.")
    for part in map(Spec.read, listed(spec)):
        name, options = part.name, dict(part.options)
        weight = read(options.pop("weight", 1.0), float, f"the weight of term {name!r}")
        if not 0 <= weight < float("inf"):
            raise InputError(f"The weight of term {name!r} is {weight:g}; it must be 0 or more, and finite.")
        if any(one.name == name for one in chosen):
            raise InputError(f"Term {name!r} is named twice in {spec!r}; name it once.")
        chosen.append(Weighted(terms.choose(Spec(name, options)), weight))
    if all(one.name != BASE for one in chosen):
        chosen.insert(0, Weighted(terms.choose(BASE), 1.0))
    return tuple(sorted(chosen, key=lambda one: one.name != BASE))


def label(chosen: Objective) -> str:
    """The shortest spec of an objective: plain cross-entropy is left out beside other terms."""
    shown = [one.label for one in chosen]
    return ",".join(shown[1:] if shown[0] == BASE and len(shown) > 1 else shown)


# -- terms at work ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ready:
    """A term of a run, prepared on its train split."""

    term: Term
    weight: float
    options: Mapping[str, Any]
    prepared: Any = None

    @property
    def name(self) -> str:
        return self.term.name

    def loss(
        self, clf: Classifier, batch: Batch, output: Output, labels: torch.Tensor, draw: Draw | None = None
    ) -> tuple[torch.Tensor, Figures]:
        """The sum over the batch, and the sums of the term's figures."""
        drawn = {"draw": draw or Draw()} if self.term.draws else {}
        found = self.term.run(clf, batch, output, labels, **self._prepared, **drawn, **self.options)
        return found if isinstance(found, tuple) else (found, {})

    def size(self, encoded: Sequence[Encoded], labels: torch.Tensor) -> float:
        """What the sum over these examples is divided by."""
        if self.term.size is None:
            return float(len(encoded))
        return float(self.term.size(encoded, labels, **self._prepared, **_named(self.term.size, self.options)))

    @property
    def _prepared(self) -> dict[str, Any]:
        return {} if self.term.prepare is None else {"prepared": self.prepared}


def ready(chosen: Objective, clf: Classifier, encoded: Sequence[Encoded], labels: torch.Tensor) -> tuple[Ready, ...]:
    """The terms of an objective, prepared on a train split."""
    found = []
    for one in chosen:
        entry, options = one.choice.entry, one.choice.options
        prepare = entry.prepare
        prepared = None if prepare is None else prepare(clf, encoded, labels, **_named(prepare, options))
        found.append(Ready(entry, one.weight, options, prepared))
    return tuple(found)


def _named(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that a function takes."""
    return {key: options[key] for key in options_of(function)}
