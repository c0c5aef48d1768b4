"""The page of `veridical audit`: a pure function of the stored summary and examples, computing nothing but layout."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib.resources import files

from markupsafe import Markup

from veridical.audits import page_looks, page_provenance, page_verdict
from veridical.audits.caveats import caveats
from veridical.audits.finished import DECIDES, PLACES
from veridical.audits.page_examples import as_json, page_data
from veridical.audits.page_parts import CorpusView
from veridical.audits.page_view import View, grouped, here
from veridical.audits.record import AuditSummary, CorpusFacts, ShownTexts
from veridical.explanations.display import duration
from veridical.page import plots
from veridical.page.render import render
from veridical.page.words import UNDEFINED, figure, interval, net, net_interval, p_value, prose, small_p


def audit_page(summary: AuditSummary, examples: ShownTexts, retraining: str = "", shortcuts: str = "") -> str:
    """One self-contained HTML page; `retraining` is a section on ROAR, as its own room renders it, `shortcuts` one on
    the words that the model relies on."""
    page = View(summary)
    script = files("veridical.audits").joinpath("audit.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()  # the one script the page may run
    return render(
        "audits/audit.html",
        s=summary,
        page=page,
        corpora=[_corpus(page, facts) for facts in page.corpora],
        provenance=page_provenance.provenance(summary),
        glance=page_provenance.glance(summary),
        foot=page_provenance.page_foot(summary),
        domains=page_verdict.domains(page),
        cost=page_verdict.cost(page),
        level=f"{100 * summary.settings.alpha:.3g}%",
        level_kept=f"{100 * (1 - summary.settings.alpha):.4g}%",
        odds=page_verdict.odds(summary.settings.margin),
        script=Markup(script),
        script_hash=digest,
        data=Markup(as_json(page_data(page, examples))),
        examples=len(examples.texts),
        num=_marked(figure),
        net=_marked(net),
        net_span=_marked(net_interval),
        p=_marked(p_value),
        small_p=_marked(small_p),
        span=_marked(interval),
        prose=prose,
        places=PLACES,
        reading=f"{PLACES} {DECIDES}",
        duration=duration,
        shape=plots.shape,
        retraining=Markup(retraining),
        shortcuts=Markup(shortcuts),
    )


def _corpus(page: View, facts: CorpusFacts) -> CorpusView:
    """All there is to show of one corpus."""
    summary, name, index = page.summary, facts.name, page.corpora.index(facts)
    verdict = page.verdicts.get(name)
    # Metric by metric only for the own domain: over four corpora these tests would outweigh all the rest.
    comparisons = [row for row in here(summary.comparisons, name) if not index or not row.metric]
    return CorpusView(
        index=index,
        facts=facts,
        f1=page.f1(facts, index),
        verdict=verdict,
        caveats=caveats(summary, name),
        lists=page_verdict.lists(page, verdict),
        grounds=page_verdict.grounds(page, facts),
        ranking=page_verdict.ranking(page, name),
        looks=page_looks.looks(page, name),
        runs=page_looks.runs(page, index),
        stability=page_verdict.stability(page, name),
        spending=page_verdict.spending(page, name),
        panels=page.panels(name),
        curves=tuple(view for metric in page.of_kind("faithfulness") if (view := page.curves(index, metric))),
        trust=page.trust(name),
        trust_by_method=grouped(here(summary.diagnosticity, name), lambda row: row.metric),
        comparisons=grouped(comparisons, lambda row: row.metric),
        cells=grouped(here(summary.cells, name), lambda row: row.metric),
        tests=here(summary.metric_tests, name),
        tests_by_method=() if index else here(summary.metric_tests_by_method, name),
        agreement=page.agreement(name),
        sparsity=page.sparsity(index),
        undefined=page.undefined(name),
    )


def _marked(say: Callable[..., str]) -> Callable[..., str]:
    """The same words, with those for a missing number set apart."""
    missing = Markup('<i class="undef">undefined</i>')

    def marked(*values: float | None) -> str:
        text = say(*values)
        return missing if text == UNDEFINED else text

    return marked
