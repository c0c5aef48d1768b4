"""`record.html`: the record of an audit on two pages, and how it is filed beside `record.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from veridical.audits.changes import since
from veridical.audits.filing import PAGE, RECORD, AuditRecord, Change, Evidence, record_of
from veridical.audits.finished import DECIDES, PLACES
from veridical.audits.limits import limits, reliance
from veridical.audits.page_provenance import page_foot, provenance
from veridical.audits.page_verdict import odds, tag_of
from veridical.audits.record import AuditSummary
from veridical.core import store, stored
from veridical.page.render import render
from veridical.page.words import interval, net, net_interval, p_value, prose

MOST_CHANGES = 14  # of the change log on paper; record.json has them all


def file_record(
    folder: Path, summary: AuditSummary, evidence: Sequence[Evidence], purpose: str, earlier: AuditRecord | None
) -> AuditRecord:
    """Writes the record beside the report, held against an earlier one if there is one."""
    record = record_of(summary, evidence, limits(summary), purpose)
    if earlier is not None:
        record = replace(record, since=since(earlier, record))
    stored.write(folder / RECORD, record)
    store.write_text(folder / PAGE, record_page(record))
    return record


def record_page(record: AuditRecord) -> str:
    """One self-contained HTML page that prints on two."""
    home = record.home
    verdict = record.verdict(home.name)
    standings = sorted((s for s in record.ranking if s.corpus == home.name), key=lambda s: s.place)
    return render(
        "audits/filing.html",
        title=f"Audit record: {record.title}",
        r=record,
        schema=record.SCHEMA,
        home=home,
        verdict=verdict,
        away=[(corpus, record.verdict(corpus.name)) for corpus in record.corpora if corpus is not home],
        standings=[(standing, tag_of(standing)) for standing in standings],
        provenance=provenance(record),
        foot=page_foot(record, "Audit record"),
        reliance=reliance(verdict.believe if verdict and verdict.enough else ()),
        changes=_first(record.since.changes) if record.since else (),
        most=MOST_CHANGES,
        odds=odds(record.settings.margin),
        level=f"{100 * record.settings.alpha:.3g}%",
        net=net,
        net_span=net_interval,
        span=interval,
        p=p_value,
        prose=prose,
        reading=f"{PLACES} {DECIDES}",
    )


def _first(changes: Sequence[Change]) -> list[Change]:
    """Regressions first, then what became better, then the rest."""
    order = {"worse": 0, "better": 1, "no change shown": 2, "not tested": 3}
    return sorted(changes, key=lambda change: order[change.outcome])[:MOST_CHANGES]
