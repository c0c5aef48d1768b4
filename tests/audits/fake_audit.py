"""A summary and examples as an audit stores them, with figures that hang together but mean nothing."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import fake_course
from audit_facts import settings
from fake_course import CHANCE, Course

from veridical.audits.record import AuditSummary, ShownTexts
from veridical.core import store, stored

Stored = tuple[AuditSummary, ShownTexts]
Plain = dict[str, Any]
Described = tuple[str, str, str, tuple[float, float]]  # a metric: name, kind, which is better, bounds
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
METHODS = (
    *("integrated_gradients", "deeplift", "occlusion", "kernel_shap", "lime", "input_x_gradient"),
    *("smoothgrad:samples=50:noise=0.15", "gradient", "attention_x_gradient", "rollout", "attention", *CHANCE),
)
METRICS: tuple[Described, ...] = (
    ("sufficiency", "faithfulness", "higher", (0, 1)),
    ("comprehensiveness", "faithfulness", "higher", (0, 1)),
    ("sufficiency:raw=true:by=mask", "faithfulness", "lower", (-1, 1)),
    ("soft_sufficiency", "faithfulness", "higher", (0, 1)),
    ("soft_comprehensiveness", "faithfulness", "higher", (0, 1)),
    ("decision_flip", "faithfulness", "lower", (0, 1)),
    ("monotonicity", "faithfulness", "higher", (0, 1)),
    ("corr", "faithfulness", "higher", (-1, 1)),
    ("loo_tau", "faithfulness", "higher", (-1, 1)),
    ("auc", "plausibility", "higher", (0, 1)),
    ("average_precision", "plausibility", "higher", (0, 1)),
    ("recall_at_k", "plausibility", "higher", (0, 1)),
    ("token_f1", "plausibility", "higher", (0, 1)),
    ("iou", "plausibility", "higher", (0, 1)),
    ("sparsity", "shape", "higher", (0, 1)),
)
PANEL = ("sufficiency", "comprehensiveness", "decision_flip")  # metrics with a vote
CURVED = ("sufficiency", "comprehensiveness")
ORACLES = ("oracle", "inverted oracle")
RATIOS = [0.01, 0.05, 0.1, 0.2, 0.5]
TEXTS = (
    "A warm , funny and quietly devastating film that never puts a foot wrong .",
    "The plot is a mess , the jokes fall flat and I wanted my two hours back .",
    f"Not bad at all {SCRIPT} & better than its <b>trailer</b> suggests --> <!-- really",
    "Loved it 😍😍 every minute of it 🎬 , even the ending !",
    "הסרט הזה היה נפלא ומרגש מאוד , אהבתי כל רגע",
    "Slow to start , but the second half repays every bit of patience , with two performances for the ages and a "
    "score that stays with you for days , though it could have lost twenty minutes and nobody would have noticed .",
)


def fake(
    methods: tuple[str, ...] = METHODS,
    metrics: tuple[Described, ...] = METRICS,
    ood: tuple[str, ...] = ("tweets", "products", "nyt_editorials"),
    *,
    texts: int = 96,
    examples: int = 40,
    words: int = 0,
    truth: bool = False,
    quick: bool = False,
    enough: bool = True,
    labels: tuple[str, ...] = ("negative", "positive"),
    seed: int = 0,
) -> Stored:
    """As many methods, metrics, corpora, texts and examples as are asked for; `words` in each text."""
    draw = random.Random(seed)
    asked = Asked(methods, metrics, ("movies", *ood), texts, truth)
    courses = [
        fake_course.course(draw, name, asked.ranked, texts if not k else max(1, texts // 2), jitter=k > 0)
        for k, name in enumerate(asked.corpora)
    ]
    panel = [name for name in asked.faithful if name in PANEL]
    summary = {
        **_facts(draw, asked, labels),
        "quick": quick,
        "quick_note": "A full run would add eight methods and five metrics, and take about six minutes.",
        "cells": [row for course in courses for row in _cells(draw, asked, course)],
        **_trust(draw, asked),
        "comparisons": _comparisons(draw, asked),
        "ranking": [row for course in courses for row in fake_course.standings(course, enough=enough)],
        "verdicts": [fake_course.verdict(course, panel, enough=enough) for course in courses],
        "looks": [row for course in courses for row in fake_course.looks(course)],
        "net_curves": [row for course in courses for row in fake_course.curves(draw, course)],
        "stability": fake_course.stability(draw, courses[0], panel),
        "spending": [fake_course.spending(course) for course in courses],
        **_likeness(draw, asked),
        "truth": _truth(asked) if truth else [],
    }
    shown = [_example(draw, k, asked.corpora, asked.methods, list(labels), words) for k in range(examples)]
    return records(summary, shown)


@dataclass(frozen=True)
class Asked:
    """What a fake audit is of."""

    given: tuple[str, ...]
    metrics: tuple[Described, ...]
    corpora: tuple[str, ...]
    texts: int
    truth: bool

    @property
    def methods(self) -> tuple[str, ...]:
        return (*self.given, *(ORACLES if self.truth else ()))

    @property
    def ranked(self) -> tuple[str, ...]:
        return tuple(name for name in self.given if name not in CHANCE)

    @property
    def faithful(self) -> list[str]:
        return [name for name, kind, _, _ in self.metrics if kind == "faithfulness"]

    def skill(self, method: str) -> float:
        if method in ORACLES or method in CHANCE:
            return float(method == "oracle")
        return 1 - self.ranked.index(method) / len(self.ranked)


def _facts(draw: random.Random, asked: Asked, labels: Sequence[str]) -> Plain:
    looks = [*(look for look in fake_course.LOOKS if look < asked.texts), asked.texts]
    return {
        "title": "minilm on movies",
        "created": "2026-01-31 12:00 UTC",
        "veridical": "0.3.0",
        "settings": store.plain(settings(controls=("orders", "gaussian"), looks=looks, budget="90000 passes")),
        "stamp": {"veridical": "0.3.0", "time": "2026-01-31", "torch": "2.13.0", "seed": 0},
        "left_out": ["rollout is left out: this model has no attention."] if "rollout" not in asked.given else [],
        "model": {"name": "runs/movies-minilm", "family": "bert", "labels": list(labels), "kind": "single"},
        "corpora": [_corpus(asked, k, name) for k, name in enumerate(asked.corpora)],
        "methods": [
            {
                "name": name,
                "summary": f"What {name} says of every token, in one sentence.",
                "signed": _signed(name),
                "needs": ["attention"] if "attention" in name else [],
                "seconds": 0.00002 if name == "random" else 0.004 * 10 ** (2.6 * draw.random()),
                "forward": float(draw.choice([0, 1, 50, 128])),
                "backward": float(draw.choice([0, 1, 50])),
                "passes": None if name in ORACLES else fake_course.passes(name),
            }
            for name in asked.methods
        ],
        "metrics": [
            {
                "name": name,
                "kind": kind,
                "better": better,
                "bounds": list(bounds),
                "summary": f"What {name} measures, in one plain sentence that a reader who is new to it can follow.",
                "ratios": RATIOS if name in CURVED else [],
                "votes": name in PANEL,
                "order": name in (*PANEL, "monotonicity"),
            }
            for name, kind, better, bounds in asked.metrics
        ],
    }


def _corpus(asked: Asked, k: int, name: str) -> Plain:
    known = k != 3
    return {
        "name": name,
        "role": "ood" if k else "in",
        "texts": asked.texts if not k else asked.texts // 2,
        "hash": None,
        "dropped": 3 * k,
        "cut_texts": k,
        "cut_tokens": 41 * k,
        "accuracy": round(0.88 - 0.07 * k, 4) if known else None,
        "macro_f1": round(0.87 - 0.08 * k, 4) if known else None,
        "accuracy_low": round(0.80 - 0.07 * k, 4) if known else None,
        "accuracy_high": round(0.94 - 0.07 * k, 4) if known else None,
        "majority": 0.52 if known else None,
        "unmoved": (3, 0, None, 1)[k],
        "documents": 40 if k == 0 else None,
    }


def _cells(draw: random.Random, asked: Asked, course: Course) -> list[Plain]:
    return [
        _cell(draw, course.corpus, method, metric, kind, better, asked.skill(method), course.n(method))
        for metric, kind, better, _ in asked.metrics
        for method in asked.methods
        if kind != "plausibility" or course.corpus == "movies"
    ]


def _trust(draw: random.Random, asked: Asked) -> Plain:
    rows = [
        {
            "corpus": corpus, "metric": metric, "method": method, "control": control, "value": value,
            "low": value - 0.06, "high": min(1, value + 0.05), "strict": value - ties / 2, "ties_win": value + ties / 2,
            "tie_rate": ties, "n": asked.texts, "pairs": asked.texts * (1 if method else len(asked.methods)), "p": p,
            "p_holm": min(1, 9 * p), "diagnostic": 9 * p < 0.05, "weight": 0.5,
            "curve": [value - ratio / 9 for ratio in RATIOS] if metric in CURVED else [],
        }
        for corpus in asked.corpora for k, metric in enumerate(asked.faithful) for control in ("orders", "gaussian")
        for method in ("", *asked.methods)
        for value, ties, p in [(0.88 - 0.05 * k + draw.uniform(-0.04, 0.04), draw.uniform(0, 0.2), draw.random() ** 5)]
    ]  # fmt: skip
    tests = [
        {
            "corpus": corpus, "method": method, "a": a, "b": b, "difference": draw.uniform(-0.3, 0.3), "p": p,
            "p_holm": min(1, 6 * p), "p_rank_sum": draw.random(), "effect": draw.uniform(-1, 1), "n": asked.texts,
        }
        for corpus in asked.corpora for method in ("", *asked.ranked)
        for a, b in itertools.combinations(asked.faithful, 2) for p in [draw.random() ** 5]
    ]  # fmt: skip
    return {
        "diagnosticity": rows,
        "metric_tests_by_method": [test for test in tests if test["method"]],
        "metric_tests": [test for test in tests if not test["method"]],
    }


def _comparisons(draw: random.Random, asked: Asked) -> list[Plain]:
    return [
        {
            "corpus": corpus, "metric": metric, "a": a, "b": b, "difference": draw.uniform(-0.3, 0.3), "p": p,
            "p_holm": min(1, 9 * p), "effect": draw.uniform(-1, 1), "n": asked.texts, "zeros": 1,
            "distinguishable": 9 * p < 0.05,
        }
        for corpus in asked.corpora for metric, *_ in asked.metrics
        for a, b in itertools.combinations(asked.methods, 2) for p in [draw.random() ** 6]
    ]  # fmt: skip


def _likeness(draw: random.Random, asked: Asked) -> Plain:
    """How alike the methods are, and how concentrated."""
    shares = [k / 10 for k in range(11)]
    return {
        "agreement": [
            {
                "corpus": corpus, "a": a, "b": b, "tau": draw.uniform(-0.3, 0.9), "jaccard": draw.random(),
                "n": asked.texts,
            }
            for corpus in asked.corpora for a, b in itertools.combinations(asked.methods, 2)
        ],
        "sparsity": [
            {"corpus": corpus, "method": name, "shares": shares, "mass": [share**power for share in shares]}
            for corpus in asked.corpora for name in asked.methods for power in [0.2 + 0.7 * draw.random()]
        ],
    }  # fmt: skip


def _truth(asked: Asked) -> list[Plain]:
    order = ["oracle", *asked.ranked, *(name for name in asked.given if name in CHANCE), "inverted oracle"]
    return [
        {
            "corpus": "movies",
            "metric": metric,
            "order": order,
            "values": [0.95 - 0.9 * k / len(order) for k in range(len(order))],
            "margin_oracle_random": 0.812,
            "margin_random_inverted": 0.067,
            "p_oracle_random": 0.0000021,
            "p_random_inverted": 0.031,
            "holds": metric != "corr",
        }
        for metric in asked.faithful
    ]


def records(summary: Plain, examples: list[Plain]) -> Stored:
    """Plain values as an audit reads them."""
    return (
        stored.from_plain({"schema": AuditSummary.SCHEMA, **summary}, AuditSummary, where="summary"),
        stored.from_plain({"schema": 2, "texts": examples}, ShownTexts, where="examples"),
    )


def _cell(
    draw: random.Random, corpus: str, method: str, metric: str, kind: str, better: str, skill: float, n: int
) -> Plain:
    gone = metric == "corr" and method == "attention"
    good = (skill if kind != "plausibility" else draw.random()) * 0.6 + 0.2 + draw.uniform(-0.08, 0.08)
    mean = good if better == "higher" else 1 - good
    curve = [mean * (0.4 + share) for share in RATIOS] if metric in CURVED else []
    curve = [None if method == "rollout" and k == 0 else value for k, value in enumerate(curve)]
    undefined = n if gone else 3 if metric in ("corr", "sufficiency") else 0
    return {
        "corpus": corpus, "method": method, "metric": metric, "n": n - undefined, "undefined": undefined, "small": None,
        "mean": None if gone else mean, "low": None if gone or n < 5 else mean - 0.05,
        "high": None if gone or n < 5 else mean + 0.06, "sampling_error": 0.0123 if "soft" in metric else None,
        "curve": curve, "curve_low": [None if v is None else v - 0.04 for v in curve],
        "curve_high": [None if v is None else v + 0.05 for v in curve],
    }  # fmt: skip


def _score(draw: random.Random, method: str) -> float:
    score = draw.gauss(0.2, 1) * 10 ** draw.uniform(-3, 0)
    return score if _signed(method) else abs(score)


def _signed(method: str) -> bool:
    return method.split(":")[0] not in ("gradient", "attention", "rollout", "smoothgrad", "random")


def _example(
    draw: random.Random, k: int, corpora: Sequence[str], methods: tuple[str, ...], labels: list[str], words: int
) -> Plain:
    text = TEXTS[k % len(TEXTS)] if not words else " ".join(draw.choice(TEXTS[1].split()) for _ in range(words))
    tokens = [list(match.span()) for match in re.finditer(r"\w{1,6}|[^\w\s]", text)]
    p = draw.uniform(0.5, 1)
    predicted, label = draw.randrange(len(labels)), draw.randrange(len(labels))
    rest = (1 - p) / max(1, len(labels) - 1)
    return {
        "corpus": corpora[k % len(corpora)],
        "id": f"text-{k}",
        "text": text,
        "context": "Is it <i>good</i>?" if k % 7 == 3 else None,
        "label": None if k % 11 == 5 else labels[label],
        "predicted": labels[predicted],
        "probabilities": [p if c == predicted else rest for c in range(len(labels))],
        "right": None if k % 11 == 5 else predicted == label,
        "rationale": [[0, 15]] if k % 2 == 0 else [],
        "tokens": tokens,
        "explanations": {
            name: {"target": labels[predicted], "scores": [_score(draw, name) for _ in tokens]} for name in methods
        },
        "disagreement": draw.random(),
    }


def bare(*empty: str) -> Stored:
    """A summary of one method with tables left empty."""
    summary, examples = fake(("gradient",), METRICS[:1], (), texts=3, examples=1)
    return replace(summary, **dict.fromkeys(empty, ())), examples


def before(given: Stored) -> Stored:
    """The same as audits before 0.3 were: looked at once, ranked without net wins."""
    summary, examples = given
    counted = ("net_first", "net_chance")
    absent = [f"{name}{end}" for name in counted for end in ("", "_low", "_high")] + ["passes", "left"]
    return (
        replace(
            summary,
            settings=replace(summary.settings, looks=(), budget=""),
            methods=tuple(replace(method, passes=None) for method in summary.methods),
            ranking=tuple(replace(standing, **dict.fromkeys(absent)) for standing in summary.ranking),
            **dict.fromkeys(("looks", "net_curves", "stability", "spending"), ()),
        ),
        examples,
    )


CASES = {
    "full": fake(truth=True),
    "quick": fake(quick=True, enough=False, ood=("tweets",)),
    "tiny": fake(("gradient",), METRICS[:1], (), texts=1, examples=0),
    "plausibility": fake(("gradient", *CHANCE), METRICS[9:10], (), texts=3, examples=1, labels=("a",)),
    "empty": bare("ranking", "verdicts", "diagnosticity", "comparisons", "agreement", "sparsity", "cells", "looks"),
    "no metric": bare("metrics", "cells", "diagnosticity", "ranking", "looks", "net_curves", "spending"),
    "before 0.3": before(fake()),
    "many labels": fake(labels=(SCRIPT, *(f"class {k}" for k in range(11)))),
}
