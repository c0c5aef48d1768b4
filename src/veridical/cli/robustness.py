"""`veridical robustness`."""

from __future__ import annotations

from dataclasses import replace

import typer

from veridical.cli.speech import TextOrCsv, print_json
from veridical.core.options import Data, Json, Models, Split, Texts
from veridical.probes.options import RobustnessOptions


def robustness(
    models: Models,
    data: Data,
    options: RobustnessOptions,
    split: Split = "test",
    limit: Texts = 200,
    style: TextOrCsv = "text",
    as_json: Json = False,
) -> None:
    """Test whether explanations depend on what a model learnt, and only on that.

    Overlap of the most important tokens between models that differ in their initialisation only (should be high), and
    between them and an untrained model (should be low). What the models differ in is said below the table: runs of
    several seeds also saw their texts in another order, unless trained with --set train.data_seed=0.

    Example: veridical robustness runs/x/seed0 runs/x/seed1 runs/x/seed2 --data hutto/movies --limit 100
    """
    from veridical.attribution import methods
    from veridical.core.progress import Report
    from veridical.data import load_data
    from veridical.data.labels import relabel
    from veridical.model.load import load
    from veridical.model.names import insist_on_models
    from veridical.probes.robustness import robustness as run
    from veridical.probes.robustness import to_csv, to_text

    insist_on_models(models)
    if options.untrained not in (None, "none", "head", "weights"):
        insist_on_models([options.untrained])
    chosen = methods.choose_all(options.method)
    dataset = load_data(str(data), limit=limit, splits=[split], seed=options.seed)
    examples = list(dataset.splits[split])
    if options.target == "gold":
        examples = relabel(examples, dataset.labels, load(models[0]).labels)
    total = len(examples) * len(chosen) * (len(models) + (options.untrained != "none"))
    with Report("Explaining", total, progress=not as_json) as report:
        how = replace(options, tick=lambda count: report.advance(steps=count))
        result = run(models, examples, **vars(how))
    if as_json:
        print_json(result)
    else:
        typer.echo((to_csv if style == "csv" else to_text)(result), nl=False)
