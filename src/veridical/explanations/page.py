"""The page of `veridical explain --html`: every text with the highlights of every method side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from veridical.explanations.display import Level, Piece, cost_line, duration, number, pieces
from veridical.explanations.explanation import Explanation
from veridical.page.render import render

CLASSES = 8  # most probabilities shown of one text


def explain_page(
    found: Mapping[str, Sequence[Explanation]],
    *,
    model: str,
    data: str = "",
    target: str = "predicted",
    level: Level = "word",
    footer: str = "Made by Veridical.",
) -> str:
    """One page from explanations by method, each list over the same texts in the same order."""
    said = {"predicted": "the one the model predicts", "gold": "the gold one"}.get(target, target)
    return render(
        "explanations/explain.html",
        title=f"What {model} looks at",
        data=data,
        target=said,
        signed=any(one.signed for explanations in found.values() for one in explanations),
        methods=[_method(name, explanations) for name, explanations in found.items()],
        texts=[_text(same, level) for same in zip(*found.values(), strict=True)],
        footer=footer,
    )


def _method(name: str, explanations: Sequence[Explanation]) -> dict[str, Any]:
    costs = [explanation.cost for explanation in explanations]
    return {
        "name": name,
        "signed": explanations[0].signed,
        "time": duration(fmean(cost.seconds for cost in costs)),
        "forward": f"{fmean(cost.forward for cost in costs):.3g}",
        "backward": f"{fmean(cost.backward for cost in costs):.3g}",
    }


def _text(same: Sequence[Explanation], level: Level) -> dict[str, Any]:
    first = same[0]
    example, labels, probabilities = first.example, first.labels, first.probabilities
    order = sorted(range(len(labels)), key=lambda i: -probabilities[i])
    shown = sorted(order[:CLASSES])  # the likeliest, in the model's own order
    gold = None
    if example.label is not None:
        indices = example.label if isinstance(example.label, tuple) else (example.label,)
        gold = ", ".join(labels[i] for i in indices) or "none"
    return {
        "id": example.id,
        "predicted": labels[order[0]],
        "explained": first.label if all(one.target == first.target for one in same) else None,  # else each says its own
        "gold": gold,
        "right": isinstance(example.label, tuple) or example.label == order[0],
        "classes": [{"name": labels[i], "p": float(probabilities[i])} for i in shown],
        "more_classes": len(labels) - len(shown),
        "context": example.context,
        "methods": [
            {
                "name": one.method,
                "explained": one.label,
                "time": duration(one.cost.seconds),
                "cost": cost_line(one.cost),
                "pieces": [_piece(piece, one.signed) for piece in pieces(one, level)],
            }
            for one in same
        ],
    }


def _piece(piece: Piece, signed: bool) -> dict[str, Any]:
    said = "" if piece.score is None else number(piece.score, signed)
    return {
        "text": piece.text,
        "sign": piece.sign,
        "weight": piece.weight,
        "said": said,
        "unread": piece.unread,
    }
