"""A summary and examples as an audit stores them, with figures that hang together but mean nothing."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace
from typing import Any

from audit_facts import settings

from veridical.audits.record import AuditSummary, ShownTexts
from veridical.core import store, stored

Stored = tuple[AuditSummary, ShownTexts]
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
METHODS = (
    *("integrated_gradients", "deeplift", "occlusion", "kernel_shap", "lime", "input_x_gradient"),
    *("smoothgrad:samples=50:noise=0.15", "gradient", "attention_x_gradient", "rollout", "attention", "random"),
)
METRICS: tuple[tuple[str, str, str, tuple[float, float]], ...] = (
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
    metrics: tuple[tuple[str, str, str, tuple[float, float]], ...] = METRICS,
    ood: tuple[str, ...] = ("tweets", "products", "nyt_editorials"),
    *,
    texts: int = 32,
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
    ranked, methods = methods, (*methods, *(("oracle", "inverted oracle") if truth else ()))
    corpora = ["movies", *ood]
    skill = {name: 1 - k / max(1, len(ranked) - 1) for k, name in enumerate(ranked)} | {
        "oracle": 1,
        "inverted oracle": 0,
    }
    faithful = [name for name, kind, _, _ in metrics if kind == "faithfulness"]
    summary: dict[str, Any] = {
        "title": "minilm on movies",
        "created": "2026-01-31 12:00 UTC",
        "veridical": "0.1.0",
        "settings": store.plain(settings(controls=("permutation", "gaussian"))),
        "stamp": {"veridical": "0.1.0", "time": "2026-01-31", "torch": "2.13.0", "seed": 0},
        "left_out": ["rollout is left out: this model has no attention."] if "rollout" not in methods else [],
        "quick": quick,
        "quick_note": "A full run would add eight methods and five metrics, and take about six minutes.",
        "model": {"name": "runs/movies-minilm", "family": "bert", "labels": list(labels), "kind": "single"},
        "corpora": [
            {
                "name": name,
                "role": "ood" if k else "in",
                "texts": texts if not k else texts // 2,
                "hash": None,
                "dropped": 3 * k,
                "cut_texts": k,
                "cut_tokens": 41 * k,
                "accuracy": None if k == 3 else round(0.88 - 0.07 * k, 4),
                "macro_f1": None if k == 3 else round(0.87 - 0.08 * k, 4),
            }
            for k, name in enumerate(corpora)
        ],
        "methods": [
            {
                "name": name,
                "summary": f"What {name} says of every token, in one sentence.",
                "signed": _signed(name),
                "needs": ["attention"] if "attention" in name else [],
                "seconds": 0.00002 if name == "random" else 0.004 * 10 ** (2.6 * draw.random()),
                "forward": float(draw.choice([0, 1, 50, 128])),
                "backward": float(draw.choice([0, 1, 50])),
            }
            for name in methods
        ],
        "metrics": [
            {
                "name": name,
                "kind": kind,
                "better": better,
                "bounds": list(bounds),
                "summary": f"What {name} measures, in one plain sentence that a reader who is new to it can follow.",
                "ratios": RATIOS if name in ("sufficiency", "comprehensiveness") else [],
            }
            for name, kind, better, bounds in metrics
        ],
    }
    summary["cells"] = [
        _cell(draw, corpus, method, metric, kind, better, skill[method], n)
        for corpus, n in ((c["name"], c["texts"]) for c in summary["corpora"])
        for metric, kind, better, _ in metrics
        for method in methods
        if kind != "plausibility" or corpus == "movies"
    ]
    summary["diagnosticity"] = [
        {
            "corpus": corpus, "metric": metric, "method": method, "control": control, "value": value,
            "low": value - 0.06, "high": min(1, value + 0.05), "strict": value - ties / 2, "ties_win": value + ties / 2,
            "tie_rate": ties, "n": texts, "pairs": texts * (1 if method else len(methods)), "p": p,
            "p_holm": min(1, 9 * p), "diagnostic": 9 * p < 0.05, "weight": 0.5,
            "curve": [value - ratio / 9 for ratio in RATIOS] if metric in ("sufficiency", "comprehensiveness") else [],
        }
        for corpus in corpora for k, metric in enumerate(faithful) for control in ("permutation", "gaussian")
        for method in ("", *methods)
        for value, ties, p in [(0.88 - 0.05 * k + draw.uniform(-0.04, 0.04), draw.uniform(0, 0.2), draw.random() ** 5)]
    ]  # fmt: skip
    tests = [
        {
            "corpus": corpus, "method": method, "a": a, "b": b, "difference": draw.uniform(-0.3, 0.3), "p": p,
            "p_holm": min(1, 6 * p), "p_rank_sum": draw.random(), "effect": draw.uniform(-1, 1), "n": texts,
        }
        for corpus in corpora for method in ("", *ranked) for a, b in itertools.combinations(faithful, 2)
        for p in [draw.random() ** 5]
    ]  # fmt: skip
    summary["metric_tests_by_method"] = [one for one in tests if one["method"]]
    summary["metric_tests"] = [one for one in tests if not one["method"]]
    summary["comparisons"] = [
        {
            "corpus": corpus, "metric": metric, "a": a, "b": b, "difference": draw.uniform(-0.3, 0.3), "p": p,
            "p_holm": min(1, 9 * p), "effect": draw.uniform(-1, 1), "n": texts, "zeros": 1,
            "distinguishable": 9 * p < 0.05,
        }
        for corpus in corpora for metric in ("", *(name for name, *_ in metrics))
        for a, b in itertools.combinations(methods if metric else ranked, 2) for p in [draw.random() ** 6]
    ]  # fmt: skip
    summary["ranking"] = []
    for corpus in corpora:
        order = sorted(ranked, key=lambda name: -skill[name] + draw.uniform(-0.2, 0.2) * (corpus != "movies"))
        for k, method in enumerate(order):
            mean = 1 + 0.07 * len(ranked) + 0.85 * k if len(ranked) > 1 else 1.0
            summary["ranking"].append(
                {
                    "corpus": corpus, "method": method, "place": k + 1, "mean_rank": mean, "low": max(1, mean - 0.7),
                    "high": min(len(ranked), mean + 0.8), "group": 1 + k // 3,
                    "better_than_random": None if method == "random" else k < 9,
                    "beats_control": None if method == "random" else k < 8,
                    "p_control": None if method == "random" else min(1, 0.00003 * 3**k), "n": texts,
                }
            )  # fmt: skip
    believe, tied, avoid = list(ranked[:1]), list(ranked[1:3]), list(ranked[-3:-1])
    summary["verdicts"] = [
        {
            "corpus": corpus,
            "believe": believe if enough else [],
            "tied": tied if enough else [],
            "undecided": list(ranked[3:5]) if enough else [],
            "avoid": avoid if enough else [],
            "weights": {name: 0.0 if name == "corr" else 0.91 - 0.1 * k for k, name in enumerate(faithful)},
            "texts": texts if corpus == "movies" else texts // 2,
            "enough": enough,
            "sentence": f"For this model on {corpus} believe {methods[0]}; {' and '.join(tied) or 'no other'} cannot "
            f"be told apart from it; do not use {' or '.join(avoid) or 'anything else'}."
            if enough
            else f"{texts} texts are too few to say which explanation of this model to believe on {corpus}.",
            "notes": ["Two of nine metrics disagree with the ranking: corr and monotonicity."],
        }
        for corpus in corpora
    ]
    summary["agreement"] = [
        {"corpus": corpus, "a": a, "b": b, "tau": draw.uniform(-0.3, 0.9), "jaccard": draw.random(), "n": texts}
        for corpus in corpora
        for a, b in itertools.combinations(methods, 2)
    ]
    shares = [k / 10 for k in range(11)]
    summary["sparsity"] = [
        {"corpus": corpus, "method": name, "shares": shares, "mass": [share ** (0.2 + 0.7 * power) for share in shares]}
        for corpus in corpora
        for name in methods
        for power in [draw.random()]
    ]
    summary["truth"] = []
    if truth:
        order = ["oracle", *(name for name in ranked if name != "random"), "random", "inverted oracle"]
        summary["truth"] = [
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
            for metric in faithful
        ]
    found = [_example(draw, k, corpora, methods, list(labels), words) for k in range(examples)]
    return records(summary, found)


def records(summary: dict[str, Any], examples: list[dict[str, Any]]) -> Stored:
    """Plain values as an audit reads them."""
    return (
        stored.from_plain({"schema": 2, **summary}, AuditSummary, where="summary"),
        stored.from_plain({"schema": 2, "texts": examples}, ShownTexts, where="examples"),
    )


def _cell(
    draw: random.Random, corpus: str, method: str, metric: str, kind: str, better: str, skill: float, n: int
) -> dict[str, Any]:
    gone = metric == "corr" and method == "attention"
    good = (skill if kind != "plausibility" else draw.random()) * 0.6 + 0.2 + draw.uniform(-0.08, 0.08)
    mean = good if better == "higher" else 1 - good
    curve = [mean * (0.4 + share) for share in RATIOS] if metric in ("sufficiency", "comprehensiveness") else []
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
    draw: random.Random, k: int, corpora: list[str], methods: tuple[str, ...], labels: list[str], words: int
) -> dict[str, Any]:
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


CASES = {
    "full": fake(truth=True),
    "quick": fake(quick=True, enough=False, ood=("tweets",)),
    "tiny": fake(("gradient",), METRICS[:1], (), texts=1, examples=0),
    "plausibility": fake(("gradient", "random"), METRICS[9:10], (), texts=3, examples=1, labels=("a",)),
    "empty": bare("ranking", "verdicts", "diagnosticity", "comparisons", "agreement", "sparsity", "cells"),
    "no metric": bare("metrics", "cells", "diagnosticity", "ranking"),
    "many labels": fake(labels=(SCRIPT, *(f"class {k}" for k in range(11)))),
}
