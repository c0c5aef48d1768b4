"""The page of `veridical audit`: a pure function of the stored summary and examples, computing nothing but layout."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from veridical.audits.page_examples import as_json
from veridical.audits.page_view import View
from veridical.explanations.display import duration
from veridical.page import plots
from veridical.page.render import render
from veridical.page.words import UNDEFINED, figure, interval, p_value, rank, rank_interval


def audit_page(summary: Mapping[str, Any], examples: Sequence[Mapping[str, Any]], retraining: str = "") -> str:
    """One self-contained HTML page. The shapes of both are what `audit` stores; `retraining` is a section on ROAR, as
    its own room renders it."""
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
        data=Markup(as_json(page.data(examples))),
        examples=len(examples),
        num=_marked(figure),
        rank=_marked(rank),
        rank_span=_marked(rank_interval),
        p=_marked(p_value),
        span=_marked(interval),
        duration=_marked(lambda seconds: UNDEFINED if seconds is None else duration(seconds)),
        setting=lambda value: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False),
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
