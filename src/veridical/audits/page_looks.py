"""What the page says of an audit's looks: who was asked, who left and why, and how net wins ran between them."""

from __future__ import annotations

from veridical.audits.page_parts import LookView, RunPanel, RunPanels
from veridical.audits.page_view import View, here
from veridical.audits.record import Ending, LookFacts, NetCurve
from veridical.page.plots import Curve
from veridical.page.running import Run, running
from veridical.page.words import net

ENDINGS: dict[Ending, str] = {
    "settled": "It ended here: no later look could tell more.",
    "futile": "It ended here: more of these texts would hardly settle what is open.",
    "last": "It ended here: the texts that were asked for are used up.",
    "budget": "It ended here: the budget does not reach the next look.",
    "time": "It ended here: the time is used up.",
}


def looks(view: View, corpus: str) -> tuple[LookView, ...]:
    """The looks at one corpus, in order."""
    views: list[LookView] = []
    for facts in here(view.summary.looks, corpus):
        left = {drop.method for drop in facts.dropped}
        on = len([name for name in facts.alive if name not in left])
        asked = facts.asked or tuple(dict.fromkeys((*facts.alive, *(drop.method for drop in facts.dropped))))
        before = {name for earlier in views for name in earlier.asked}
        entered = tuple(name for name in asked if name not in before) if views else ()
        views.append(LookView(facts, asked, entered, on, _then(facts, on)))
    return tuple(views)


def _then(facts: LookFacts, on: int) -> str:
    return ENDINGS[facts.ended] if facts.ended else f"{on} {'method goes' if on == 1 else 'methods go'} on."


def runs(view: View, index: int) -> RunPanels | None:
    """Net wins over chance as texts came in, best method first."""
    corpus = view.corpora[index].name
    curves = {curve.method: curve for curve in here(view.summary.net_curves, corpus) if curve.texts}
    ordered = [(m, curves[view.specs[m]]) for m in view.order(corpus) if view.specs[m] in curves]
    if not ordered:
        return None
    back, drawn = running(
        [Run(curve.texts, Curve(curve.net, curve.low, curve.high)) for _, curve in ordered],
        [facts.texts for facts in here(view.summary.looks, corpus)],
        [_said(curve) for _, curve in ordered],
        f"runs-{index}",
    )
    panels = (
        RunPanel(m, plot, curve.net[-1], curve.texts[-1]) for (m, curve), plot in zip(ordered, drawn, strict=True)
    )
    return RunPanels(back, tuple(panels))


def _said(curve: NetCurve) -> str:
    points = list(zip(curve.texts, curve.net, strict=True))
    points = [*points[: -1 : 1 + len(points) // 6], points[-1]]  # some of a long curve: this is read aloud
    words = ", ".join(f"{net(value)} after {texts}" for texts, value in points)
    return f"{curve.method}, net wins over chance as texts came in: {words}"
