"""`veridical explain`: what it reads and prints around the library function of the same name."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from veridical.cli.speech import say
from veridical.core.errors import InputError
from veridical.core.options import Budget, Count, Data, Device, Help, Json, Methods, Model, Seed, Target
from veridical.core.place import A_FILE, A_SOURCE, check_apart, check_page
from veridical.core.ranges import at_least
from veridical.core.readable import insist_on_characters, read_utf8
from veridical.core.records import Example
from veridical.model.names import insist_on_model

if TYPE_CHECKING:
    from rich.padding import Padding
    from rich.text import Text

    from veridical.explanations.explanation import Explanation

METHODS = ("attention", "integrated_gradients", "occlusion")  # one that looks, one that differentiates, one that asks
SPLIT, LIMIT = "test", 10  # of data
Level = Literal["word", "token"]
Given = Annotated[Sequence[str], Help("A text. May be repeated.", "TEXT", commas=False)]
File = Annotated[str | None, Help("A file with a text per line, or - for the input.", "FILE"), A_SOURCE]
Source = Annotated[Data | None, Help("A dataset to take texts from.", "DATA")]
Split = Annotated[str | None, Help("Split of the data: train, dev, test, or what else it has.", "SPLIT", default=SPLIT)]
Limit = Annotated[Count | None, Help("At most so many texts, a seeded sample.", default=str(LIMIT))]
Context = Annotated[str | None, Help("A question or premise: read, not explained.", "TEXT")]
Contrast = Annotated[
    str | int | None, Help("Class to explain it against: second (the likeliest other), a name or an index.", "CLASS")
]
Shown = Annotated[Level, Help("What is highlighted: word or token.", "UNIT")]
Overlap = Annotated[
    Annotated[int, at_least(0)] | None, Help("Explain too long texts in windows that share so many tokens.", "N")
]
Page = Annotated[str | None, Help("Write a page with the highlights.", "FILE"), A_FILE]
Out = Annotated[str | None, Help("Write the scores: a .parquet or .jsonl file.", "FILE"), A_FILE]


def explain(
    model: Model,
    text: Given = (),
    file: File = None,
    data: Source = None,
    split: Split = None,
    limit: Limit = None,
    seed: Seed = 0,
    context: Context = None,
    methods: Methods = METHODS,
    target: Target = "predicted",
    contrast: Contrast = None,
    level: Shown = "word",
    overlap: Overlap = None,
    html: Page = None,
    out: Out = None,
    device: Device = None,
    budget: Budget = None,
    as_json: Json = False,
) -> None:
    """Show which words a classifier's decision rests on, according to one or several methods.

    Example: veridical explain runs/demo/hutto-movies-minilm/run --text "A warm, funny film." --method occlusion

    Example: veridical explain my-model --data hutto/amazon --limit 20 --html amazon.html
    """
    check_apart(html, "--html", file, data)
    check_apart(out, "--out", file, data)
    check_page(html, "--html")
    if html is not None and out is not None and os.path.realpath(html) == os.path.realpath(out):
        raise InputError(f"--html and --out are both {html}, and one would be written over the other; name two files.")
    if out is not None:
        from veridical.explanations.exchange import check_format

        check_format(out)
    examples, labels = gather(text, file, data, context=context, split=split, limit=limit, seed=seed)
    insist_on_model(model)
    # All that a user can mistake has been looked at; what follows takes seconds to import.
    from veridical.attribution import methods as known
    from veridical.core.progress import LITTLE, Report
    from veridical.explanations.arguments import told_of
    from veridical.explanations.explain import explain as run
    from veridical.model.load import load

    chosen = [choice.label for choice in known.choose_all(methods)]
    clf = load(model)
    if labels:
        from veridical.data.labels import relabel

        examples = relabel(examples, labels, clf.labels)
    windows = len(clf.encode(examples, overlap=overlap)) * len(chosen)
    told = told_of(clf, len(chosen))
    with Report("Explaining", windows, progress=True, late=windows <= LITTLE, **told) as report:
        how = {"target": target, "contrast": contrast, "overlap": overlap}
        explained = run(clf, examples, chosen, progress=False, tick=lambda n: report.advance(steps=n), **how)
    absent = {path: os.path.dirname(path) for path in filter(None, (html, out)) if _lacks_folder(path)}
    if html is not None:
        from veridical.core import store
        from veridical.explanations.page import explain_page

        where = f"{data} ({SPLIT if split is None else split})" if data else ""
        against = None if contrast is None else str(contrast)
        page = explain_page(explained, model=model, data=where, target=str(target), contrast=against, level=level)
        store.write_text(html, page)
    if out is not None:
        from veridical.explanations.exchange import write_explanations

        write_explanations(out, [explanation for several in explained.values() for explanation in several])
    for path, parent in absent.items():
        say(f"The folder {parent} was made for {os.path.basename(path)}.")
    for path in filter(None, (html, out)):
        (say if as_json else typer.echo)(path)
    if as_json:
        typer.echo(to_json(explained))
    elif html is None and out is None:
        show(explained, level)


def _lacks_folder(path: str) -> bool:
    return not os.path.isdir(os.path.dirname(path) or ".")


def gather(
    text: Sequence[str],
    file: str | None,
    data: Any,
    *,
    context: str | None,
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> tuple[list[Example], tuple[str, ...]]:
    """The texts to explain and, if they come from a dataset, the names of its labels."""
    given = [name for name, value in (("--text", text), ("--file", file), ("--data", data)) if value]
    if len(given) != 1:
        what = f"{' and '.join(given)} were given together" if given else "There is no text to explain"
        raise InputError(f'{what}; give one of --text "...", --file texts.txt (or -) and --data NAME.')
    if data:
        if context is not None:
            raise InputError("--context goes with --text or --file; data brings its own.")
        from veridical.data import load_texts

        split = SPLIT if split is None else split
        dataset = load_texts(data, limit=LIMIT if limit is None else limit, seed=seed, splits=[split])
        return list(dataset.splits[split]), dataset.labels
    for name, value in (("--split", split), ("--limit", limit)):
        if value is not None:
            raise InputError(
                f"{name} {value} chooses among the texts of --data, and of {given[0]} every text is explained; leave "
                "it out."
            )
    texts = list(text) if text else _lines(str(file))
    for given_text in (*texts, context or ""):
        insist_on_characters(given_text, "The text")
    for place, given_text in enumerate(texts, 1):
        if not given_text.strip():
            raise InputError(f"Text {place} has no text to explain; write some words.")
    return [Example(str(place), line, context=context) for place, line in enumerate(texts, 1)], ()


def _lines(file: str) -> list[str]:
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig") if file == "-" else read_utf8(file)
    except UnicodeDecodeError as problem:
        raise InputError(f"The input is not UTF-8 ({problem.reason}); convert it to UTF-8.") from problem
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{'The input' if file == '-' else file} holds no text; write one text per line.")
    return lines


def to_json(explained: Mapping[str, Sequence[Explanation]]) -> str:
    """A list of the rows that --out writes, with the words and their scores beside the tokens."""
    from veridical.explanations.exchange import to_row

    rows: list[dict[str, Any]] = [
        {
            **to_row(explanation),
            "options": json.loads(to_row(explanation)["options"]),
            "labels": list(explanation.labels),
            "words": list(explanation.words),
            "word_scores": explanation.word_scores.tolist(),
        }
        for several in explained.values()
        for explanation in several
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]"


def show(explained: Mapping[str, Sequence[Explanation]], level: Level) -> None:
    """Every text with the highlights of every method under each other."""
    from rich.console import Console
    from rich.text import Text

    from veridical.explanations.display import as_rich, class_line, cost_line, legend, printable

    console = Console(highlight=False)
    colour = console.color_system is not None and not console.no_color
    for same in zip(*explained.values(), strict=True):
        console.print(_heading(same[0]))
        if same[0].example.context is not None:
            console.print(_indented(Text(f"context: {printable(same[0].example.context)}", "dim"), 2))
        for explanation in same:
            spent = cost_line(explanation.cost, explanation.sampling_error, explanation.gap)
            about = f"explains {class_line(explanation)}: {spent}"
            console.print(_indented(Text.assemble((explanation.method, "bold"), " ", (about, "dim")), 2))
            console.print(_indented(as_rich(explanation, level, colour=colour), 4))
        console.print()
    signs = {explanation.signed for several in explained.values() for explanation in several}
    console.print(legend(True in signs, False in signs, colour=colour))


def _indented(text: Text, by: int) -> Padding:
    from rich.padding import Padding

    return Padding(text, (0, 0, 0, by), expand=False)


def _heading(explanation: Explanation) -> Text:
    from rich.text import Text

    labels, probabilities, label = explanation.labels, explanation.probabilities, explanation.example.label
    order = sorted(range(len(labels)), key=lambda i: -probabilities[i])[:4]
    likely = ", ".join(f"{labels[i]} {probabilities[i]:.3f}" for i in order)
    gold = ""
    if label is not None:
        gold = f"  gold {', '.join(labels[i] for i in (label if isinstance(label, tuple) else (label,)))}"
    return Text.assemble((explanation.example.id, "bold"), f"  {likely}", (gold, "dim"))
