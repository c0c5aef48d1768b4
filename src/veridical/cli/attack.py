"""`veridical attack`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from veridical.cli.speech import TextOrCsv, print_json, say
from veridical.core.errors import InputError
from veridical.core.options import Data, Help, Json, Models, Split, Texts
from veridical.core.place import A_FILE, check_apart
from veridical.model.names import insist_on_models
from veridical.probes.options import AttackOptions

Out = Annotated[str | None, Help("Write every text as it became: a .jsonl file.", "FILE"), A_FILE]


def attack(
    models: Models,
    data: Data,
    options: AttackOptions,
    split: Split = "test",
    limit: Texts = 400,
    out: Out = None,
    style: TextOrCsv = "text",
    as_json: Json = False,
) -> None:
    """Attack right predictions with changes that leave a text's meaning alone (CheckList).

    Contractions, numbers, names of people and places. Several models are attacked with the same texts.

    Example: veridical attack runs/x runs/y --data hutto/movies --limit 200 --out attacked.jsonl
    """
    _check(models, out)
    check_apart(out, "--out", data)
    insist_on_models(models)
    from veridical.core import store
    from veridical.core.progress import Report
    from veridical.data import load_data
    from veridical.data.labels import relabel
    from veridical.model.load import load
    from veridical.probes.attack import attack as run
    from veridical.probes.attack import to_csv, to_rows, to_text

    dataset = load_data(str(data), limit=limit, splits=[split], seed=options.seed)
    attacks = {}
    with Report("Attacking", len(models) * len(dataset.splits[split]), progress=not as_json) as report:
        how = replace(options, tick=lambda count: report.advance(steps=count))
        for model in models:
            clf = load(model)
            attacks[model] = run(clf, relabel(list(dataset.splits[split]), dataset.labels, clf.labels), **vars(how))
    if as_json:
        print_json({name: {**attacked.summary, "entities": attacked.entities} for name, attacked in attacks.items()})
    else:
        typer.echo((to_csv if style == "csv" else to_text)(attacks), nl=False)
    if out is not None:
        store.write_jsonl(out, to_rows(attacks))
        (say if as_json or style == "csv" else typer.echo)(out)


def _check(models: Sequence[str], out: str | None) -> None:
    if out is not None and not out.endswith(".jsonl"):
        raise InputError(f"--out {out} does not end in .jsonl, which is what is written; name such a file.")
    for name in models:
        if list(models).count(name) > 1:
            raise InputError(f"The model {name!r} is named twice; name each once.")
