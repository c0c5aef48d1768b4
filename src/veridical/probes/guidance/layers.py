"""What every layer says of a text, in one pass: a row of scores per layer, instead of a method run once per layer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import torch
from torch import Tensor

from veridical.attribution.alti import alti_layers
from veridical.core.records import Batch, Encoded
from veridical.model.classifier import Classifier
from veridical.model.decompose.contributions import normalised, roll
from veridical.model.decompose.decompose import kept, readouts
from veridical.model.decompose.share import How
from veridical.model.decompose.trace import Trace, trace
from veridical.model.memory import run_all
from veridical.model.pooling import read_row

# A technique is the method of that spec ended at a layer; after the colon the method whose pass gives it.
TECHNIQUES = {
    "attention": "attention",  # of the layer alone
    "rollout": "rollout",  # up to the layer
    "alti:rollout=false": "alti",  # of the layer alone
    "alti": "alti",  # up to the layer
    "decompx": "decompx",  # up to the layer
}
Rows = dict[str, Tensor]  # technique -> [B, L, T], special tokens kept


def techniques_of(methods: Collection[str]) -> tuple[str, ...]:
    """The techniques that these methods have a row per layer for."""
    return tuple(name for name, method in TECHNIQUES.items() if method in methods)


@torch.no_grad()
def layer_rows(clf: Classifier, batch: Batch, techniques: Collection[str]) -> Rows:
    """Rows of every layer (inside `clf.eager()` and `clf.at_rest()`)."""
    needed = {TECHNIQUES[name] for name in techniques}
    seen: Trace | None = None
    if needed & {"alti", "decompx"}:
        seen = trace(clf, batch)
        attentions = [layer.attention.mean(1) for layer in seen.layers]
    else:
        attentions = [layer.mean(1) for layer in clf.forward(batch, attentions=True).attentions]  # L x [B, T, T]
    eye = torch.eye(batch.ids.shape[1], dtype=attentions[0].dtype, device=clf.device)
    read = read_row(clf, eye.expand_as(attentions[0]), batch)  # [B, T], what the head reads
    rows = {"attention": roll(read, reversed(attentions))[0]}
    if "rollout" in needed:
        rows["rollout"] = roll(read, (normalised(layer + eye) for layer in reversed(attentions)))[1]
    if seen is not None and "alti" in needed:
        rows["alti:rollout=false"], rows["alti"] = alti_layers(seen)
    if seen is not None and "decompx" in needed:
        rows["decompx"] = torch.zeros_like(rows["attention"])
        for i in range(len(batch.ids)):
            keep = kept(seen, i)
            rows["decompx"][i][:, keep] = readouts(seen, i, How())[:, : len(keep)]
    return {name: torch.where(batch.mask[:, None], rows[name], 0.0) for name in techniques}


def layered(clf: Classifier) -> bool:
    """Whether a model has layers of attention to look at one by one."""
    return getattr(clf.model.config, "num_hidden_layers", 1) > 1


def rows_of(
    clf: Classifier, encoded: Sequence[Encoded], techniques: Collection[str], *, budget: int | None = None
) -> Iterator[tuple[int, Rows]]:
    """For every text its place and its rows [L, T], without padding, in no particular order."""
    by_place: dict[int, Rows] = {}

    def run(places: list[int]) -> None:
        rows = layer_rows(clf, clf.collate([encoded[i] for i in places]), techniques)
        for row, place in enumerate(places):
            length = len(encoded[place].ids)
            by_place[place] = {name: scores[row, :, :length].float().cpu() for name, scores in rows.items()}

    with clf.eager(), clf.at_rest():
        run_all(clf, [len(e.ids) for e in encoded], run, work="layers", budget=budget)
    yield from by_place.items()
