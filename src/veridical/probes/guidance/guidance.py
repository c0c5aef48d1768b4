"""Guidance: did training towards people's rationales change what a model relies on, or was the loss hacked?

From finished runs of a baseline and of guided conditions, each with one or more seeds (Ferreira et al., *Explanation
Regularisation through the Lens of Attributions*; docs/explanation-regularisation.md).

    DIR/spec.json                     what was asked of which texts
    DIR/runs/<condition>/seed0/       what was measured of each run (measure.py): interrupted, the same call goes on;
                                      called again with more conditions, it adds them
    DIR/summary.json  tables/*.csv    every figure, test and verdict
    DIR/report.html                   the same for people
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from veridical.attribution import methods as all_methods
from veridical.audits.audit import claim
from veridical.audits.corpora import Corpus, corpora_of
from veridical.audits.selection import tried
from veridical.core import store, stored, tables
from veridical.core.errors import InputError, lacking
from veridical.core.frames import Columns, Tabular, columns_of
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.records import Dataset
from veridical.core.spec import listed
from veridical.data import load_data
from veridical.data.labels import relabel
from veridical.data.split import sample
from veridical.grid.claim import claimed
from veridical.metric import metrics as all_metrics
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.page.snippet import told
from veridical.probes.guidance.measure import Measured, Settings, explanation_loss, measure
from veridical.probes.guidance.record import SUMMARY, ChangeRow, Cut, GuidanceSettings, GuidanceSummary, TextSettings
from veridical.probes.guidance.runs import Condition, condition, selection
from veridical.probes.guidance.summary import TABLES, Findings, summarise
from veridical.probes.options import GuidanceOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BASELINE = "baseline"


@dataclass(frozen=True, repr=False)
class Guidance(Tabular):
    """What `guidance` found and where it lies."""

    COLUMNS: ClassVar[Columns] = columns_of(ChangeRow)  # a row per change of reliance, or of a metric of a method

    folder: Path
    summary: GuidanceSummary

    @property
    def page(self) -> Path:
        """The report."""
        return self.folder / "report.html"

    @property
    def verdict(self) -> str:
        """What was found, in a sentence."""
        return self.summary.headline

    def __repr__(self) -> str:
        # Of one condition the headline is its sentence, and is said once.
        sentences = ["" if v.sentence == self.verdict else v.sentence for v in self.summary.verdicts]
        lines = [
            f"{v.corpus}, {v.condition} ({v.outcome}): {sentence}".rstrip(": ")
            for v, sentence in zip(self.summary.verdicts, sentences, strict=True)
        ]
        return "\n".join([self.verdict, *lines, f"report {self.page}"])

    def _repr_html_(self) -> str:
        rows = [[v.corpus, v.condition, v.outcome, v.sentence] for v in self.summary.verdicts]
        cells = [["corpus", "condition", "outcome", "what was found"], *rows]
        return told(cells, title=self.summary.title, lead=self.verdict, link=self.page)

    def _rows(self) -> tuple[ChangeRow, ...]:
        return self.summary.changes

    def plot(
        self, corpus: str | None = None, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None
    ) -> Axes:
        """How far each condition changed reliance on the rationale and every metric of every method, with 95%
        intervals; on the data itself unless a corpus is named. Returns the Axes, those of `ax` or new ones."""
        from veridical.page.charts import Series, intervals

        corpora = [facts.name for facts in self.summary.corpora]
        if corpus is not None and corpus not in corpora:
            raise lacking("This comparison", "corpus", corpus, corpora)
        changes = [row for row in self.summary.changes if row.corpus == (corpus or corpora[0])]
        series = [
            Series(
                name,
                {
                    f"{row.what} {row.method}".strip(): (row.difference, row.low, row.high)
                    for row in changes
                    if row.condition == name
                },
            )
            for name in dict.fromkeys(row.condition for row in changes)
        ]
        return intervals(series, f"difference from the {BASELINE}, {corpus or corpora[0]}, 95% interval", ax, figsize)


@takes(GuidanceOptions)
def guidance(options: GuidanceOptions) -> Guidance:
    """Did training towards people's rationales change what a model relies on, or did it only lower the loss?

    Guided runs are compared with baseline runs; a folder is a run's, or holds runs as seed0, seed1, ... `guided` is a
    dict from the name of a condition to its run or runs. The other corpora serve for macro-F1 and, where they have
    rationales, for the rest. A witness that a condition guides is none for it. Metrics of faithfulness are shown and
    held against macro-F1 out of domain.

    Returns:
        What was found: `.verdict` in a sentence, `.summary` every figure, `.page` the report.

    Example:
        >>> found = veridical.guidance("runs/plain", {"attention": "runs/guided"}, "planted", out="guidance")
        >>> print(found.verdict)
    """
    conditions = _conditions(options.base, options.guided)
    data, split, ood_split, margin = options.data, options.split, options.ood_split, options.margin
    draws, by, seed = options.draws, options.by, options.seed
    home = load_data(data)
    others = [_elsewhere(load_data(ood), split, ood_split) for ood in options.ood]
    if not any(e.rationale for e in home.splits.get(split, ())):
        raise InputError(f"{home.name} has no rationales in its split {split!r}; use data that has, such as planted.")
    seen = [choice.label for choice in all_methods.choose_all(options.witnesses)]
    wanted = _specs(options.methods, seen, conditions)
    abroad = _specs(options.ood_methods, (), conditions)
    judges = tuple(choice.label for choice in all_metrics.choose_all(options.metrics))
    first = load(conditions[0].runs[0].folder)
    example = next(e for e in home.splits[split] if e.rationale)
    works, left_out = tried(first, first.encode([example])[0], wanted)
    how = Settings(tuple(works), judges, draws, by, seed)
    away = Settings(tuple(m for m in abroad if m in works or m not in wanted), judges, draws, by, seed)
    if not how.plausibility:
        raise InputError(f"None of the metrics {', '.join(judges)} compares with a rationale; add auc.")
    limits = (options.limit, options.ood_limit, options.f1_limit)
    texts = TextSettings(split, ood_split or split, *limits, seed)
    asked = Asked(conditions, home, others, texts, how, away)
    folder, steps = Path(options.out), sum(len(c.runs) for c in conditions) * (1 + len(others))
    settings = GuidanceSettings(
        **vars(texts),
        methods=how.methods,
        ood_methods=away.methods,
        metrics=judges,
        witnesses=tuple(seen),
        margin=margin,
        draws=draws,
        by=by,
    )
    with claimed(folder, _spec(asked)):
        with Report("Measuring", steps, progress=options.progress) as report:
            chosen_by = selection(conditions)
            for note in filter(None, [*left_out, chosen_by]):
                report.say(note)
            measured = _measure(asked, folder, report)
        findings = summarise(
            conditions, measured.corpora, measured.runs, measured.baseline, how, seen, margin, measured.cuts
        )
        summary = _summary(findings, settings, home.name, left_out, chosen_by)
        _write(folder, summary)
    return Guidance(folder, summary)


def _summary(
    findings: Findings, settings: GuidanceSettings, data: str, left_out: Sequence[str], chosen_by: str
) -> GuidanceSummary:
    guided = [condition.name for condition in findings.conditions[1:]]
    return GuidanceSummary(
        title=f"{', '.join(guided)} against {BASELINE} on {data}",
        headline=findings.headline,
        verdicts=findings.verdicts,
        conditions=findings.conditions,
        corpora=findings.corpora,
        changes=findings.changes,
        **vars(findings.tables),
        settings=settings,
        left_out=tuple(left_out),
        selection=chosen_by,
        **_stamp(),
    )


def _write(folder: Path, summary: GuidanceSummary) -> None:
    from veridical.probes.guidance.page import guidance_page

    stored.write(folder / SUMMARY, summary)
    for name in TABLES:
        if rows := getattr(summary, name):
            store.write_text(folder / "tables" / f"{name}.csv", tables.to_csv(rows))
    store.write_text(folder / "report.html", guidance_page(summary))


# -- what is measured ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """Which runs are measured on which texts, and how."""

    conditions: Sequence[Condition]  # the baseline first
    home: Dataset
    others: Sequence[Dataset]
    texts: TextSettings
    how: Settings  # at home
    away: Settings


@dataclass(frozen=True)
class MeasuredRuns:
    """What the runs gave."""

    runs: dict[tuple[str, int], dict[str, Measured]]  # condition and seed -> corpus
    baseline: dict[tuple[str, int], float | None]  # the explanation loss of a guide and a seed of the baseline
    cuts: dict[str, Cut]  # by corpus
    corpora: list[Corpus]


def _measure(asked: Asked, folder: Path, report: Report) -> MeasuredRuns:
    """Every run on every corpus; what is stored already is read."""
    measured = MeasuredRuns({}, {}, {}, [])
    base, *guided = asked.conditions
    for group, run in [(each, run) for each in asked.conditions for run in each.runs]:
        clf, texts = load(run.folder), asked.texts
        which: dict[str, Any] = {"split": texts.split, "seed": texts.seed}
        explained = corpora_of(clf, asked.home, asked.others, limit=texts.limit, ood_limit=texts.ood_limit, **which)
        predicted = corpora_of(clf, asked.home, asked.others, limit=texts.f1_limit, **which)
        place = folder / "runs" / store.slug(group.name) / f"seed{run.seed}"
        by_corpus = measured.runs.setdefault((group.name, run.seed), {})
        with claim(place, clf, explained, store.plain(texts)):
            for corpus, more in zip(explained, predicted, strict=True):
                how = asked.how if corpus.role == "in" else asked.away
                by_corpus[corpus.name] = measure(clf, corpus, more.examples, place, how)
                measured.cuts.setdefault(corpus.name, _cut(clf, corpus))
                report.advance(f"{group.name} seed {run.seed}, {corpus.name}")
            measured.corpora[:] = explained
            if group is base:
                losses = _baseline_losses(clf, run.folder, asked.home, guided, place)
                measured.baseline.update({(guide, run.seed): loss for guide, loss in losses.items()})
    return measured


def _conditions(base: Any, guided: Mapping[str, Any]) -> list[Condition]:
    if not guided:
        raise InputError("There is no guided condition; name at least one, like att=runs/att.")
    if BASELINE in guided:
        raise InputError(f"A guided condition is called {BASELINE!r}, which is the other side's name; name it apart.")

    def several(sources: Any) -> list[str | Path]:
        return [sources] if isinstance(sources, (str, Path)) else list(sources)

    return [condition(name, several(held)) for name, held in {BASELINE: base, **guided}.items()]


def _elsewhere(data: Dataset, split: str, ood_split: str | None) -> Dataset:
    """The data with its split `ood_split` in the place of `split`."""
    if ood_split is None:
        return data
    if ood_split not in data.splits:
        raise InputError(f"{data.name!r} has no split {ood_split!r}; it has: {', '.join(data.splits)}.")
    return replace(data, splits={**data.splits, split: data.splits[ood_split]})


def _specs(given: str | Sequence[str], more: Sequence[str], conditions: Sequence[Condition]) -> list[str]:
    """Labels of the methods: those given, and always those that some condition guides."""
    guides = [guide for condition in conditions for guide in condition.guides]
    return list(dict.fromkeys(choice.label for choice in all_methods.choose_all([*listed(given), *more, *guides])))


def _spec(asked: Asked) -> dict[str, Any]:
    """Which texts a folder is about may not change; conditions may come later."""
    return {"data": asked.home.name, "ood": [other.name for other in asked.others], **store.plain(asked.texts)}


def _baseline_losses(
    clf: Classifier, run: Path, home: Dataset, guided: Sequence[Condition], place: Path
) -> dict[str, float | None]:
    """The explanation loss on dev of a baseline run, for every guide of the others: the point of weight 0."""
    terms = [condition.explanation for condition in guided]
    wanted = {term.choice.label: term for term in terms if term is not None}
    if not wanted or not home.splits.get("train") or not home.splits.get("dev"):
        return {}
    limit = stored.read_fields(run / "spec.json", "data.limit")["data"]["limit"]
    train, dev = (
        relabel(sample(part, limit, 0) if limit else part, home.labels, clf.labels)
        for part in (home.splits["train"], home.splits["dev"])
    )
    return {label: explanation_loss(clf, train, dev, term, place) for label, term in wanted.items()}


def _cut(clf: Classifier, corpus: Corpus) -> Cut:
    encoded = clf.encode(corpus.examples)
    return Cut(cut_texts=sum(e.cut > 0 for e in encoded), cut_tokens=sum(e.cut for e in encoded))


def _stamp() -> dict[str, Any]:
    stamp = store.stamp()
    return {
        "created": f"{datetime.fromisoformat(stamp['time']):%d %B %Y, %H:%M} UTC",
        "veridical": stamp["veridical"],
        "stamp": stamp,
    }
