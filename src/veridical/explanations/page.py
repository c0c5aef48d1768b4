"""Every text with the highlights of every method side by side: the page of `veridical explain --html`, and what a
notebook shows of explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from veridical.explanations.display import Level, Piece, cost_line, duration, number, pieces
from veridical.explanations.explanation import Explanation
from veridical.page.render import render

CLASSES = 8  # most probabilities shown of one text
SHOWN = 10  # most texts that a notebook shows at once


def explain_page(
    by_method: Mapping[str, Sequence[Explanation]],
    *,
    model: str,
    data: str = "",
    target: str = "predicted",
    contrast: str | None = None,
    level: Level = "word",
    footer: str = "Made by Veridical.",
) -> str:
    """One page from explanations by method, each list over the same texts in the same order."""
    named = {"predicted": "the one the model predicts", "gold": "the gold one"}.get(target, target)
    if contrast is not None:
        named += f", against {'the likeliest other one' if contrast == 'second' else contrast}"
    return render(
        "explanations/explain.html",
        title=f"What {model} looks at",
        data=data,
        target=named,
        **_signs(by_method),
        methods=[_method(name, explanations) for name, explanations in by_method.items()],
        texts=[_text(same, level) for same in zip(*by_method.values(), strict=True)],
        footer=footer,
    )


def explain_snippet(by_method: Mapping[str, Sequence[Explanation]], level: Level = "word") -> str:
    """The first texts of the same as a notebook shows them, and a word on the rest."""
    texts = [_text(same, level) for same in zip(*(of_one[:SHOWN] for of_one in by_method.values()), strict=False)]
    more = max(map(len, by_method.values()), default=0) - len(texts)
    return render("explanations/snippet.html", texts=texts, more=more, **_signs(by_method))


def _signs(by_method: Mapping[str, Sequence[Explanation]]) -> dict[str, bool]:
    """What the legend has to explain."""
    signs = {explanation.signed for explanations in by_method.values() for explanation in explanations}
    return {"signed": True in signs, "unsigned": False in signs}


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
        # None: each says its own
        "explained": first.question if len({explanation.question for explanation in same}) == 1 else None,
        "gold": gold,
        "right": isinstance(example.label, tuple) or example.label == order[0],
        "classes": [{"name": labels[i], "p": float(probabilities[i])} for i in shown],
        "more_classes": len(labels) - len(shown),
        "context": example.context,
        "methods": [
            {
                "name": explanation.method,
                "explained": explanation.question,
                "time": duration(explanation.cost.seconds),
                "cost": cost_line(explanation.cost, explanation.sampling_error, explanation.gap),
                "pieces": [_piece(piece, explanation.signed) for piece in pieces(explanation, level)],
            }
            for explanation in same
        ],
    }


def _piece(piece: Piece, signed: bool) -> dict[str, Any]:
    shown = "" if piece.score is None else number(piece.score, signed)
    return {
        "text": piece.text,
        "sign": piece.sign if signed or not piece.sign else "matters",
        "weight": piece.weight,
        "said": shown,
        "unread": piece.unread,
    }
