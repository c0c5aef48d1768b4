"""`veridical evaluate`: scores of explanations of a dataset's texts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veridical.audits.options import EvaluateOptions
from veridical.cli.speech import print_json, say
from veridical.core.errors import Caution
from veridical.core.options import Data, Help, Json, Model, Split, Texts
from veridical.core.place import A_SOURCE, check_claim
from veridical.core.records import Example

if TYPE_CHECKING:
    from veridical.audits.corpora import Corpus
    from veridical.audits.evaluate import Evaluation
    from veridical.explanations.exchange import Reading

FILES = "Score these explanations too, made elsewhere (.parquet, .jsonl). May be repeated."
Files = Annotated[Sequence[str], Help(FILES, "FILE", "--explanations", commas=False), A_SOURCE]


def evaluate(
    model: Model,
    data: Data,
    options: EvaluateOptions,
    split: Split = "test",
    limit: Texts = 200,
    files: Files = (),
    as_json: Json = False,
) -> None:
    """Score a model's explanations of some texts with the metrics you choose.

    Prints each metric's mean per method with its 95% interval. The texts need no labels. With --out everything is kept,
    and interrupted, the same command goes on.

    To learn which method to believe, use `veridical audit`: it also ranks, tests and reports.

    Example: veridical evaluate runs/x --data hutto/movies --method attention,lime --metric decision_flip --out scores
    """
    if options.out is not None:
        check_claim(options.out)
    from veridical.audits.audit import claim
    from veridical.audits.corpora import corpora_of, insist_on_split
    from veridical.audits.evaluate import columns
    from veridical.audits.evaluate import evaluate as run
    from veridical.core import store
    from veridical.data import load_texts
    from veridical.explanations.alignment import to_attributions
    from veridical.explanations.exchange import read_explanations
    from veridical.model.load import load

    home = load_texts(data)
    insist_on_split(home, split)
    rows = [row for path in files for row in read_explanations(path)]
    _insist_on_metrics(options, home.splits[split], {row.method for row in rows})
    clf, target, out = load(model), options.target, options.out
    (corpus,) = corpora_of(clf, home, (), split=split, limit=limit, seed=options.seed)
    foreign = to_attributions(
        clf, _of_sample(rows, corpus, home.splits[split]) if rows else [], corpus.examples, target=target
    )
    settings = {"target": target, "split": split, "seed": options.seed}
    with nullcontext() if out is None else claim(out, clf, [corpus], settings):
        how = replace(options, explanations=foreign, corpus=corpus.name)
        evaluation = run(clf, corpus.examples, **vars(how))
        if out is not None:
            store.write_parquet(Path(out) / "scores.parquet", columns(evaluation.cells))
    if as_json:
        print_json(evaluation.table())
        return
    typer.echo(_table(evaluation))
    if out is not None:
        typer.echo(str(Path(out) / "scores.parquet"))


def _insist_on_metrics(options: EvaluateOptions, texts: Sequence[Example], theirs: set[str]) -> None:
    """Refuse metrics of which none can be computed before a model is loaded; who is left out is told by the verb."""
    from veridical.attribution import methods
    from veridical.audits.computable import computable
    from veridical.metric import metrics

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        computable(
            metrics.choose_all(options.metrics or ()), texts, len(methods.choose_all(options.methods)) + len(theirs)
        )


def _of_sample(rows: Sequence[Reading], corpus: Corpus, whole: Sequence[Example]) -> list[Reading]:
    """Explanations of the texts that were drawn, where there are some of the whole split."""
    drawn = {e.id for e in corpus.examples} | {(e.text, e.context) for e in corpus.examples}
    others = {key for e in whole for key in (e.id, (e.text, e.context))} - drawn
    kept = [row for row in rows if (row.id if row.id is not None else (row.text, row.context)) not in others]
    if len(kept) < len(rows):
        say(f"{len(rows) - len(kept)} explanations of texts that were not drawn are left out; --limit draws more.")
    return kept


def _table(evaluation: Evaluation) -> str:
    """A line for each metric and method (or pair of methods), and under them what their words mean."""
    from veridical.core.tables import to_text
    from veridical.metric.erasure import SMALL
    from veridical.page.words import interval

    rows, before = [["metric", "method", "mean", "95% interval", "n"]], ""
    for (metric, method), estimate in evaluation.estimates.items():
        bounds = interval(estimate.low, estimate.high) if estimate.low is not None else ""
        mean = _figure(evaluation, metric, method)
        rows.append(["" if metric == before else metric, method, mean, bounds, str(estimate.n)])
        before = metric
    if len(rows) == 1:
        return f"Explained by {', '.join(evaluation.attributions)}; no metric was asked for."
    table = to_text(rows, right=(4,))
    legend = {
        "undefined": "undefined: texts on which the metric has no value; neither the mean nor n counts them.",
        "small D": f"small D: texts on which the metric divides by less than {SMALL:g}, so that its value is unsteady.",
    }
    return "\n".join([table, *(line for word, line in legend.items() if word in table)])


def _figure(evaluation: Evaluation, metric: str, method: str) -> str:
    """A mean, with how many texts it is undefined for, and on how many a soft metric divides by little; nothing where
    the metric is not about this."""
    from veridical.metric.erasure import SMALL

    scores = [c.score for c in evaluation.cells if (c.metric, c.method, c.control) == (metric, method, "")]
    mean = evaluation.mean(metric, method)
    if not scores or mean is None:
        return "undefined" if scores else ""
    undefined = sum(score.value is None for score in scores)
    small = sum(score.value is not None and score.room is not None and score.room < SMALL for score in scores)
    counts = [f"{count} {what}" for count, what in ((undefined, "undefined"), (small, "with a small D")) if count]
    return f"{mean:.3f} ({', '.join(counts)})" if counts else f"{mean:.3f}"
