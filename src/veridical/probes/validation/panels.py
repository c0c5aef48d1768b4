"""Who might judge: panels of metrics, and the operators under which they erase."""

from __future__ import annotations

from dataclasses import dataclass

from veridical.core.records import Operator
from veridical.metric import metrics as all_metrics

OPERATORS: tuple[Operator, ...] = ("delete", "mask", "attention")
HARD = ("sufficiency", "comprehensiveness", "decision_flip")
SOFT = ("soft_sufficiency", "soft_comprehensiveness")
MONOTONICITY = "monotonicity"


@dataclass(frozen=True)
class Panel:
    """Metrics that judge together, each with the same weight."""

    name: str
    by: str  # an operator; of a panel that erases nothing whole, and of monotonicity, nothing
    metrics: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{self.name}, {self.by}" if self.by else self.name


def soft_by_order() -> tuple[str, ...]:
    """The soft metrics with ranks in place of scores, so that they see no more than the order."""
    return tuple(all_metrics.choose(name, scale="rank").label for name in SOFT)


def under(metric: str, by: Operator) -> str:
    return all_metrics.choose(metric, by=by).label


def of_order() -> tuple[str, ...]:
    """The metrics of order alone, under every operator."""
    return (*(under(metric, by) for by in OPERATORS for metric in HARD), MONOTONICITY, *soft_by_order())


def panels() -> list[Panel]:
    """All of them, the hard ones under each operator first."""
    ranked = soft_by_order()
    judges: list[Panel] = []
    for by in OPERATORS:
        hard = tuple(under(metric, by) for metric in HARD)
        judges.append(Panel("hard", by, hard))
        judges += [Panel(name, by, (metric,)) for name, metric in zip(HARD, hard, strict=True)]
        judges.append(Panel("hard and soft", by, (*hard, *SOFT)))
        judges.append(Panel("hard and soft by order", by, (*hard, *ranked)))
        judges.append(Panel("all", by, (*hard, *SOFT, MONOTONICITY)))
    judges.append(Panel("soft", "", SOFT))
    judges += [Panel(name, "", (name,)) for name in SOFT]
    judges.append(Panel("soft by order", "", ranked))
    judges += [Panel(f"{name} by order", "", (metric,)) for name, metric in zip(SOFT, ranked, strict=True)]
    judges.append(Panel(MONOTONICITY, "", (MONOTONICITY,)))
    return judges
