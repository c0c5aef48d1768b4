"""How often a verdict was wrong where the truth is known: what `veridical validate` found for the default panel.

The figures are those of docs/validation.md, which says how they came about; a test holds page, docs and README
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veridical.audits.record import Settings
from veridical.audits.sequential import Rule
from veridical.core.records import Operator


@dataclass(frozen=True)
class KnownError:
    """The errors of one panel in worlds that had no say in anything."""

    metrics: tuple[str, ...]  # that voted
    by: Operator  # how they erased
    worlds: int  # in which a method was believed
    wrong: int  # of these, those whose believed method is not truly good
    low: float  # 95% interval of their share
    high: float
    where: str  # what the wrong ones have in common
    good: int  # truly good methods in all worlds
    banned: int  # of these, told not to be used

    @property
    def share(self) -> str:
        """So many of so many, with the interval."""
        interval = f"95% interval {100 * self.low:.0f}% to {100 * self.high:.0f}%"
        return f"wrong in {self.wrong} of {self.worlds} worlds with a known truth ({interval})"

    def of(self, panel: Sequence[str], settings: Settings) -> bool:
        """Whether an audit was judged as these worlds were: by the same metrics, at the same looks and levels."""
        rule = Rule().within(settings.looks[-1])
        same_rule = (settings.looks, settings.alpha, settings.margin) == (rule.looks, rule.alpha, rule.margin)
        return set(panel) == set(self.metrics) and settings.by == self.by and same_rule


KNOWN = KnownError(
    metrics=("sufficiency", "comprehensiveness", "decision_flip"),
    by="delete",
    worlds=60,
    wrong=22,
    low=0.246,
    high=0.501,
    where="17 of them worlds in which the order of two words decides; by the words that the models need, in 6",
    good=473,
    banned=0,
)
