"""Training under a bound: minimise the objective + multiplier x (term - bound), the multiplier climbing.

    bound: explanation=0.035+0.031      of the train loss, and of the dev loss that makes an epoch eligible
           explanation=0.035            the same for both
           explanation=0.035:lr=0.05    with the multiplier's learning rate

This is equation 2 of explanation regularisation (Ferreira et al.) as released, but for the multiplier, which is in
its own optimiser alone (there AdamW moves it too). It starts at 1, is moved by RMSprop at the model's schedule and is
never below 0. RMSprop's first step is ten times its rate, whatever the violation. An epoch may be kept if its dev loss
is below 1.1 times the dev bound; of those the best by `select` is. Patience is halved, and counted anew, at the first
of them. A run without any fails: it says so, and keeps no weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from veridical.core.errors import InputError
from veridical.core.ranges import above
from veridical.core.spec import Spec, listed, pair
from veridical.core.values import read
from veridical.training.term import BASE, Objective, Weighted, terms

SMOOTHING, EPS = 0.99, 1e-8  # of RMSprop
SEARCH = "search"  # what stands in place of a bound's numbers
SLACK = 1.1  # an epoch is eligible if its dev loss is below so many times the dev bound


@dataclass(frozen=True, slots=True)
class Bound:
    """What a term may at most be."""

    term: str
    train: float
    dev: float
    lr: float  # of its multiplier

    @property
    def label(self) -> str:
        return f"{self.term}={self.train}+{self.dev}:lr={self.lr}"

    def holds(self, dev: Mapping[str, float | None]) -> bool:
        """Whether an epoch with these dev scores is eligible."""
        value = dev[self.term]
        if value is None:
            raise InputError(
                f"Term {self.term!r} says nothing of the dev split (no text there has what it compares with), so its "
                "bound cannot be checked; use data whose dev split has it."
            )
        return value < SLACK * self.dev


@dataclass(frozen=True, slots=True)
class Multiplier:
    """Of one bound, with the state of its optimiser."""

    value: float = 1.0
    square: float = 0.0  # running mean of the squared violation


def climb(multiplier: Multiplier, violation: float, rate: float) -> Multiplier:
    """One ascent step of RMSprop along the violation (term - bound), then the projection onto 0 and above."""
    square = SMOOTHING * multiplier.square + (1 - SMOOTHING) * violation**2
    value = multiplier.value + rate * violation / (math.sqrt(square) + EPS)
    return Multiplier(max(0.0, value), square)


def constrain(chosen: Objective, spec: str | None) -> tuple[Objective, tuple[Bound, ...]]:
    """The objective with every bounded term in it, and the bounds."""
    return hold(chosen, read_bounds(spec))


def hold(chosen: Objective, asked: Sequence[tuple[str, Spec]]) -> tuple[Objective, tuple[Bound, ...]]:
    """What `constrain` gives, from bounds that are read already."""
    bounds: list[Bound] = []
    for name, value in asked:
        if name == BASE:
            raise InputError(f"The bound {name}={value.write()} is of what is minimised; bound a term beside it.")
        own = next((one for one in chosen if one.name == name), None)
        if own is None:
            own = Weighted(terms.choose(name), 1.0)
            chosen = (*chosen, own)
        if own.weight != 1:
            raise InputError(
                f"Term {name!r} has the weight {own.weight:g} and a bound; its multiplier is its weight: leave one out."
            )
        if any(bound.term == name for bound in bounds):
            raise InputError(f"Term {name!r} is bounded twice; bound it once.")
        bounds.append(_bound(own, value))
    if bounds and len(bounds) == len(chosen):
        raise InputError("Every term has a bound, so nothing is minimised; leave one term free.")
    return chosen, tuple(bounds)


def read_bounds(spec: str | None) -> list[tuple[str, Spec]]:
    """`a=0.1,b=0.2+0.3:lr=0.05` as terms, and their numbers with options."""
    pairs = [pair(text, "The bound", "TERM=VALUE", "explanation=0.035+0.031") for text in listed(spec)]
    return [(terms[name].name, Spec.read(value)) for name, value in pairs]


def _bound(term: Weighted, value: Spec) -> Bound:
    who = f"the bound of term {term.name!r}"
    if value.name == SEARCH:
        raise InputError(f"{who} is to be searched: `veridical.training.bound_search` finds it as numbers.")
    numbers = read(value.name, tuple[float, ...], who)
    if len(numbers) > 2 or not all(0 < number < math.inf for number in numbers):
        raise InputError(
            f"{who} is {value.name!r}; it must be one number above 0, or two (train+dev) like 0.035+0.031."
        )
    # The paper's rates: 0.05 where attention is guided, 0.1 elsewhere.
    lr = 0.05 if term.choice.options.get("method") == "attention" else 0.1
    for key, text in value.options.items():
        if key != "lr":
            raise InputError(f"{who} has no option {key!r}; it takes lr, the rate of its multiplier.")
        lr = read(text, Annotated[float, above(0)], f"lr of {who}")
    return Bound(term.name, numbers[0], numbers[-1], lr)


def label(bounds: Sequence[Bound]) -> str:
    """A spec that gives the bounds back."""
    return ",".join(bound.label for bound in bounds)
