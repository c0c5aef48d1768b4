"""Which metrics can be computed at all on some texts, said before anything is explained."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from veridical.core.errors import Caution, InputError
from veridical.core.records import Example
from veridical.core.registry import Choice
from veridical.metric import Metric
from veridical.metric import metrics as known


def computable(
    metrics: Sequence[Choice[Metric]], texts: Sequence[Example], methods: int, *, above: int = 2
) -> list[Choice[Metric]]:
    """Those that some of the texts allow; the others are left out with a warning, and if none is left it is an error.

    `methods` is how many explanations each text has. `above` this function, so many calls up, stands the user's line.
    """
    reasons = {metric.label: hindrance(metric.entry, texts, methods) for metric in metrics}
    refused = {label: reason for label, reason in reasons.items() if reason}
    sentences = [f"{label} cannot be computed: {reason}" for label, reason in refused.items()]
    if metrics and len(refused) == len(reasons):
        raise InputError(f"{'; '.join(sentences)}. Name other metrics (`veridical list metrics`), or mend that.")
    if refused:
        warnings.warn(f"{'; '.join(sentences)}. It is left out.", Caution, stacklevel=above + 1)
    return [metric for metric in metrics if metric.label not in refused]


def allowed(specs: Sequence[str], texts: Sequence[Example], methods: int) -> list[str]:
    """Those of some metrics that the texts allow, without a word: for who asks them of texts of every kind."""
    return [spec for spec in specs if not hindrance(known.choose(spec).entry, texts, methods)]


def hindrance(metric: Metric, texts: Sequence[Example], methods: int) -> str:
    """Why a metric cannot be computed on any of the texts; nothing where it can."""
    if "rationale" in metric.needs and not any(text.rationale for text in texts):
        return f"it compares with rationales, and none of the {len(texts)} texts has one (a column `rationale`)"
    if "pair" in metric.needs and methods < 2:
        return "it compares two methods, and one is named"
    return ""
