"""The verbs that measure: `evaluate`, `audit`, `compare`, `report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veridical.cli.speech import Json, Number
from veridical.core.spec import listed

if TYPE_CHECKING:
    from veridical.audits.audit import Audit
    from veridical.audits.corpora import Corpus
    from veridical.audits.evaluate import Evaluation
    from veridical.explanations.exchange import Reading

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A run folder, a model's folder or a hub id.")]
Target = Annotated[str, typer.Option(metavar="CLASS", help="Explained class: predicted, gold, a name or an index.")]
Split = Annotated[str, typer.Option(metavar="SPLIT", help="Split of the data: train, dev, test, or what else it has.")]
DATA = "a dataset's name, hub:owner/name, a file or a folder (see `veridical data list`)"
SCORED = ("attention", "input_x_gradient", "integrated_gradients", "random")
MEASURED = ("sufficiency", "comprehensiveness", "decision_flip")


def Names(what: str, default: str) -> typer.models.OptionInfo:  # noqa: N802  like typer.Option, which it stands for
    """An option that takes names of a registry."""
    said = f"Some of `veridical list {what}`: name:option=value, with commas or repeated."
    return typer.Option(metavar="NAMES", help=f"{said} [dim]\\[default: {default}][/]")


def evaluate(
    model: Model,
    data: Annotated[str, typer.Option(metavar="DATA", help=f"Texts to explain: {DATA}.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for scores.parquet and the explanations.")],
    split: Split = "test",
    limit: Annotated[int, Number(help="At most so many texts, a seeded sample.")] = 200,
    method: Annotated[list[str] | None, Names("methods", ", ".join(SCORED))] = None,
    metric: Annotated[list[str] | None, Names("metrics", ", ".join(MEASURED))] = None,
    explanations: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Score these explanations too, made elsewhere (.parquet, .jsonl). May be repeated."
        ),
    ] = None,
    target: Target = "predicted",
    seed: Annotated[int, Number(help="Seed of the sample and of everything random.")] = 0,
    as_json: Json = False,
) -> None:
    """Score a model's explanations of some texts with the metrics you choose.

    Prints each metric's mean per method. Interrupted, the same command goes on.

    To learn which method to believe, use `veridical audit`: it also ranks, tests and reports.

    Example: veridical evaluate runs/x --data hutto/movies --method attention,lime --metric decision_flip --out scores
    """
    from veridical.audits.audit import claim
    from veridical.audits.corpora import corpora_of
    from veridical.audits.evaluate import columns
    from veridical.audits.evaluate import evaluate as run
    from veridical.cli.data import plain_table
    from veridical.core import store
    from veridical.core.progress import Report
    from veridical.explanations.alignment import to_attributions
    from veridical.explanations.exchange import read_explanations
    from veridical.model.load import load

    clf = load(model)
    (corpus,) = corpora_of(clf, data, (), split=split, limit=limit, seed=seed)
    claim(out, clf, [corpus], {"target": target, "split": split, "seed": seed})
    given = [row for path in explanations or () for row in read_explanations(path)]
    foreign = to_attributions(
        clf, _of_sample(given, corpus, data, split) if given else [], corpus.examples, target=target
    )
    with Report("Evaluating", len(corpus.examples), progress=False if as_json else None) as report:
        found = run(
            clf,
            corpus.examples,
            method or SCORED,
            metric or MEASURED,
            target=target,
            explanations=foreign,
            corpus=corpus.name,
            seed=seed,
            out=out,
            tick=lambda count: report.advance(steps=count),
        )
    path = out / "scores.parquet"
    store.write_parquet(path, columns(found.cells))
    means = found.table()
    if as_json:
        typer.echo(json.dumps(means, indent=2))
        return
    from rich.console import Console

    names = list(dict.fromkeys(cell.metric for cell in found.cells)) or list(metric or MEASURED)
    table = plain_table("method", *names, right=tuple(names))
    for name in dict.fromkeys([*means, *(cell.method for cell in found.cells)]):  # and pairs of methods
        table.add_row(name, *(_figure(found, m, name) for m in names))
    Console(highlight=False).print(table)
    typer.echo(str(path))


def _of_sample(rows: list[Reading], corpus: Corpus, data: str, split: str) -> list[Reading]:
    """Explanations of the texts that were drawn, where there are some of the whole split."""
    from veridical.cli.speech import say
    from veridical.data import load_data

    drawn = {e.id for e in corpus.examples} | {(e.text, e.context) for e in corpus.examples}
    others = {key for e in load_data(data).splits[split] for key in (e.id, (e.text, e.context))} - drawn
    kept = [row for row in rows if (row.id if row.id is not None else (row.text, row.context)) not in others]
    if len(kept) < len(rows):
        say(f"{len(rows) - len(kept)} explanations of texts that were not drawn are left out; --limit draws more.")
    return kept


def _figure(found: Evaluation, metric: str, method: str) -> str:
    """A mean, with how many texts it is undefined for, and on how many a soft metric divides by little; nothing where
    the metric is not about this."""
    from veridical.metric.soft_faithfulness import SMALL

    scores = [c.score for c in found.cells if (c.metric, c.method, c.control) == (metric, method, "")]
    mean = found.mean(metric, method)
    if not scores or mean is None:
        return "undefined" if scores else ""
    undefined = sum(score.value is None for score in scores)
    small = sum(score.value is not None and score.room is not None and score.room < SMALL for score in scores)
    counts = [f"{count} {what}" for count, what in ((undefined, "undefined"), (small, "with a small D")) if count]
    return f"{mean:.3f} ({', '.join(counts)})" if counts else f"{mean:.3f}"


def audit(
    model: Model,
    data: Annotated[str, typer.Option(metavar="DATA", help=f"What the model is for: {DATA}.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for report.html and everything behind it.")],
    ood: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="Data from other domains, audited beside it; with commas or repeated."),
    ] = None,
    split: Split = "test",
    limit: Annotated[
        int | None,
        Number(help="At most so many texts per corpus, a seeded sample. [dim]\\[default: 200, or 48 with --quick][/]"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", metavar="", help="A first verdict from cheap methods and metrics.")
    ] = False,
    method: Annotated[list[str] | None, Names("methods", "all that work on the model")] = None,
    metric: Annotated[list[str] | None, Names("metrics", "all that apply to the data")] = None,
    target: Target = "predicted",
    by: Annotated[
        Literal["delete", "mask", "attention", "zero_id_attended"],
        typer.Option(
            metavar="HOW",
            help="How tokens are erased: delete, mask (the mask token), attention (not attended), zero_id_attended "
            "(id 0, as some released code does).",
        ),
    ] = "delete",
    level: Annotated[
        Literal["token", "word"], typer.Option(metavar="UNIT", help="What is erased at a time: token or word.")
    ] = "token",
    control: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Random explanations that each method is held against: permutation (its own scores shuffled), "
            "gaussian, or both with a comma.",
        ),
    ] = "permutation",
    seed: Annotated[int, Number(help="Seed of the sample and of everything random.")] = 0,
    as_json: Json = False,
) -> None:
    """Find out which explanation of a model to believe, and write a page that says so.

    Explains test texts with every method, scores every explanation with every metric that applies, ranks the methods.

    A ranking says which differences the texts can carry. Interrupted at any moment, the same command goes on.

    Example: veridical audit runs/x --data hutto/movies --ood hutto/amazon,hutto/tweets --limit 100 --out audit
    """
    from veridical.audits.audit import audit as run
    from veridical.audits.record import SUMMARY
    from veridical.core.errors import InputError

    controls: list[Literal["permutation", "gaussian"]] = []
    for name in listed(control):
        if name != "permutation" and name != "gaussian":
            raise InputError(f"--control is {control!r}; it must be permutation, gaussian, or both with a comma.")
        controls.append(name)
    made = run(
        model,
        data,
        out=out,
        ood=listed(ood),
        split=split,
        limit=limit,
        quick=quick,
        methods=method,
        metrics=metric,
        target=target,
        by=by,
        level=level,
        controls=list(dict.fromkeys(controls)),
        seed=seed,
        progress=False if as_json else None,
    )
    if as_json:
        typer.echo((made.folder / SUMMARY).read_text(encoding="utf-8"), nl=False)
        return
    print_audit(made)


def print_audit(made: Audit) -> None:
    """The verdict, the ranking and where the page lies."""
    from rich.console import Console

    from veridical.cli.data import plain_table

    console = Console(highlight=False)
    home = made.summary.corpora[0].name
    console.print(f"\n{made.verdict}\n", markup=False)
    standings = [standing for standing in made.summary.ranking if standing.corpus == home]
    if standings:
        table = plain_table("", "method", "mean rank", "95%", "beats its control", right=("mean rank",))
        for row in sorted(standings, key=lambda standing: standing.place):
            interval = "" if row.low is None else f"{row.low:.2f} to {row.high:.2f}"
            beats = {True: "yes", False: "no", None: "not tested"}[row.beats_control]
            table.add_row(str(row.place), row.method, f"{row.mean_rank:.2f}", interval, beats)
        console.print(table)
    if made.summary.quick_note:
        console.print(f"\n{made.summary.quick_note}", markup=False)
    typer.echo(f"\nreport {made.page}")


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders that `veridical audit` wrote.")],
    style: Annotated[
        Literal["text", "csv", "latex"],
        typer.Option("--format", metavar="HOW", help="How it is printed: text, csv or latex."),
    ] = "text",
) -> None:
    """Put audits side by side: means with intervals, tests between models, and how alike models explain.

    Runs whose models differ only in the seed are one model: the mean over seeds, with an interval from five on.

    A single run has intervals over its texts. Other models are tested against the first one named.

    Audit all models on the same texts: the same --data, --split, --limit and --seed.

    Example: veridical compare audits/bert-seed0 audits/bert-seed1 audits/roberta-seed0 --format latex
    """
    from veridical.audits import compare as module

    table = module.compare(runs)
    typer.echo({"text": module.to_text, "csv": module.to_csv, "latex": module.to_latex}[style](table))


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `veridical audit` wrote.")],
    roar: Annotated[
        Path | None, typer.Option(help="A folder that `veridical roar` wrote: show it as a section of the page.")
    ] = None,
) -> None:
    """Write an audit's report.html anew from its stored files, for instance after an update; nothing is measured.

    Example: veridical report audits/movies --roar roar/movies
    """
    from veridical.audits.audit import RETRAINING, retraining_of
    from veridical.audits.page import audit_page
    from veridical.audits.record import EXAMPLES, SUMMARY, read_examples, read_summary
    from veridical.core import store
    from veridical.core.errors import InputError
    from veridical.retraining.roar.page import audit_section
    from veridical.retraining.roar.record import read_copy, write_copy

    for name in (SUMMARY, EXAMPLES):
        if not (folder / name).exists():
            raise InputError(f"{folder} has no {name}; name the folder of a finished audit.")
    summary, examples = read_summary(folder), read_examples(folder)
    if roar is not None:
        for name in ("summary.json", "time.json", "curves.parquet"):
            if not (roar / name).exists():
                raise InputError(f"{roar} has no {name}; name a folder that `veridical roar` wrote.")
        write_copy(folder / "roar.json", roar)
    if (folder / "roar.json").exists():
        store.write_text(folder / RETRAINING, audit_section(*read_copy(folder / "roar.json")))
    store.write_text(folder / "report.html", audit_page(summary, examples, retraining_of(folder)))
    typer.echo(str(folder / "report.html"))
