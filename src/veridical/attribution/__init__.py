"""Attribution methods: one file each, found by scanning this folder.

A *looker* is a function `(clf, batch, target, *, options) -> scores [B, T]`. It calls `target` first with the
logits of the unaltered input. An *asker* is a generator `(ex, *, options)` that yields altered inputs, receives
their answers and returns scores `[T]`. Either way scores are raw: what is said of special tokens is kept here
and zeroed by `veridical.explain`; padding is 0. A method that draws may return them as `Sampled`, with their error,
and one whose scores should sum to the change of the logit as `Summed`, with what they miss of it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from veridical.core.errors import Caution, InputError
from veridical.core.readable import shown
from veridical.core.registry import Choice, Registry

Need = Literal["attention", "gradient", "layers", "questions"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Method:
    """An attribution method and what is true of it."""

    name: str
    run: Callable[..., Any]
    # attention: eager attention weights; layers: an encoder that `model.decompose.wiring` knows; questions: it asks
    # about altered texts
    needs: frozenset[Need]
    signed: bool  # negative scores speak against the explained class
    differentiable: bool  # can guide training
    complete: bool  # scores of all altered positions sum to the change of the logit
    of_target: bool  # depends on which class is explained
    version: int  # raised when its numbers change, so that stored scores are not mistaken for today's
    reference: bool  # made from what metrics measure: shown beside methods, never ranked
    passes: str  # per text, for the documentation; `explanations/passes.py` counts them

    @property
    def asks(self) -> bool:
        return "questions" in self.needs

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.run) or "").split("\n\n")[0].replace("\n", " ")


@dataclass(frozen=True)
class Sampled:
    """Scores and how far they might be off for want of draws, as a share of their spread (attribution/sampling.py)."""

    scores: Any  # [B, T] of a looker, [T] of an asker
    error: Any  # one for every text of a looker, one of an asker; None: not known


@dataclass(frozen=True)
class Summed:
    """Scores that should sum to the change of the logit, and how far they are from it, as a share of the change."""

    scores: Any  # [B, T] of a looker
    gap: Any  # one for every text; None: not known


def scores_of(returned: Any) -> Any:
    """The scores in what a method returned."""
    return returned.scores if isinstance(returned, (Sampled, Summed)) else returned


def insist_on_scores(scores: Any, shape: tuple[int, ...], who: str) -> None:
    """Refuse what a method of somebody's own may return in the place of one number per token."""
    if tuple(getattr(scores, "shape", ())) != shape or "complex" in str(getattr(scores, "dtype", "")):
        given = f"{type(scores).__name__} of shape {tuple(scores.shape)}" if hasattr(scores, "shape") else shown(scores)
        raise InputError(f"{who} returned {given}; it must return a real number for every token, of shape {shape}.")


def warn_of_no_class(chosen: Iterable[Choice[Method]], contrast: Any, *, above: int = 3) -> None:
    """A contrast changes nothing where the class does not count. `above` as in `warn_of_cuts`."""
    same = [choice.label for choice in chosen if not choice.entry.of_target]
    if contrast is not None and same:
        warnings.warn(
            f"{', '.join(same)}: scores are the same for every class, so the contrast does not change them.",
            Caution,
            stacklevel=above + 1,
        )


methods: Registry[Method] = Registry("attribution method", "veridical.attribution", "method")


def method(
    name: str,
    *,
    needs: tuple[Need, ...] = (),
    signed: bool,
    differentiable: bool = False,
    complete: bool = False,
    of_target: bool = True,
    version: int = 1,
    reference: bool = False,
    passes: str = "",
) -> Callable[[F], F]:
    """Register a function as an attribution method; without `passes` its needs say how many it takes."""
    usual = "questions" if "questions" in needs else "1 forward, 1 backward" if "gradient" in needs else "1 forward"

    def add(run: F) -> F:
        facts = (signed, differentiable, complete, of_target, version, reference)
        methods.add(Method(name, run, frozenset(needs), *facts, passes or usual))
        return run

    return add
