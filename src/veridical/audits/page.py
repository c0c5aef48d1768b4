"""The page of `veridical audit`: a pure function of the stored summary and examples, computing nothing but layout."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib.resources import files

from markupsafe import Markup

from veridical.audits.page_examples import as_json, page_data
from veridical.audits.page_view import View
from veridical.audits.record import AuditSummary, ShownTexts
from veridical.explanations.display import duration
from veridical.page import plots
from veridical.page.render import render
from veridical.page.words import UNDEFINED, figure, interval, p_value, rank, rank_interval


def audit_page(summary: AuditSummary, examples: ShownTexts, retraining: str = "") -> str:
    """One self-contained HTML page; `retraining` is a section on ROAR, as its own room renders it."""
    page = View(summary)
    script = files("veridical.audits").joinpath("audit.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()  # the one script the page may run
    return render(
        "audits/audit.html",
        s=summary,
        page=page,
        corpora=[page.corpus(corpus) for corpus in page.corpora],
        script=Markup(script),
        script_hash=digest,
        data=Markup(as_json(page_data(page, examples))),
        examples=len(examples.texts),
        num=_marked(figure),
        rank=_marked(rank),
        rank_span=_marked(rank_interval),
        p=_marked(p_value),
        span=_marked(interval),
        duration=duration,
        shape=plots.shape,
        retraining=Markup(retraining),
    )


def _marked(say: Callable[..., str]) -> Callable[..., str]:
    """The same words, with those for a missing number set apart."""
    missing = Markup('<i class="undef">undefined</i>')

    def marked(*values: float | None) -> str:
        text = say(*values)
        return missing if text == UNDEFINED else text

    return marked
