"""Facts about audits that never ran, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from veridical.audits.record import (
    AuditSummary,
    CorpusFacts,
    MethodFacts,
    MetricFacts,
    ModelFacts,
    Role,
    Settings,
)
from veridical.metric import Direction, Kind


def settings(**changes: Any) -> Settings:
    return Settings(
        **{
            "target": "predicted",
            "split": "test",
            "by": "delete",
            "level": "token",
            "controls": ("permutation",),
            "seed": 0,
            **changes,
        }
    )


def a_corpus(name: str, role: Role = "in", texts: int = 30, **changes: Any) -> CorpusFacts:
    blank = {"hash": None, "dropped": 0, "cut_texts": 0, "cut_tokens": 0, "accuracy": None, "macro_f1": None}
    return CorpusFacts(name=name, role=role, texts=texts, **{**blank, **changes})


def a_method(name: str) -> MethodFacts:
    return MethodFacts(name, f"What {name} says.", True, (), 0.01, 1.0, 0.0)


def a_metric(
    name: str,
    kind: Kind = "faithfulness",
    better: Direction = "higher",
    ratios: Sequence[float] = (),
    repeats: Sequence[str] = (),
) -> MetricFacts:
    return MetricFacts(name, kind, better, (0, 1), f"What {name} measures.", tuple(repeats), tuple(ratios))


def facts(corpora: Sequence[CorpusFacts], metrics: Sequence[MetricFacts], **changes: Any) -> AuditSummary:
    """An audit of these, before anything is made of its scores."""
    given = {
        "title": "toy on home",
        "created": "1 January 2026, 12:00 UTC",
        "veridical": "0.2.0",
        "model": ModelFacts("toy", "bert", ("negative", "positive"), "single"),
        "settings": settings(),
        "stamp": {},
        "methods": (),
        **changes,
    }
    return AuditSummary(corpora=tuple(corpora), metrics=tuple(metrics), **given)
