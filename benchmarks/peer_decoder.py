"""The methods that interpreto has too, on the same decoder: how alike the scores are, and the time, in one run.

    python -m benchmarks.peer_decoder --model FOLDER

FOLDER is a decoder that classifies, as `veridical train --model smollm2 --set train.lora=8` makes one. interpreto's
gradients are averages of |gradient x input| over the width, at every step of a path too, and what it occludes becomes a
token that it adds to the model. So its saliency is computed here from our gradient as well, and has to be the same; of
the other pairs Kendall's tau by size is told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from benchmarks.peer_interpreto import INSTALL, Interpreto, installed
from benchmarks.results import machine, markdown, show, spread, write_json, write_text
from benchmarks.subject import Subject, arguments, forward_pass, subject
from benchmarks.timing import Contender, measure
from veridical.attribution import methods
from veridical.attribution.gradient import embedding_gradient
from veridical.core.records import Encoded
from veridical.explanations.explain import attributions
from veridical.metric.agreement import kendall
from veridical.model.target import Target

STEPS = 10  # of integrated gradients, interpreto's default
BATCHES = (4, 16)  # rows that interpreto puts through the model at once; 4 is its default
PAIRS = {
    "input_x_gradient": "input_x_gradient",
    f"integrated_gradients:steps={STEPS}": "integrated_gradients",
    "occlusion": "occlusion",
}


def ours(held: Subject, spec: str) -> list[np.ndarray]:
    explanations = attributions(held.clf, held.encoded, methods.choose(spec), budget=held.budget)
    return [_words(each.scores, encoded) for each, encoded in zip(explanations, held.encoded, strict=True)]


def theirs(given: Iterable[Any]) -> list[np.ndarray]:
    """The scores of the predicted class, which is the one interpreto explains unless it is told otherwise."""
    return [np.asarray(text.attributions)[0] for text in given]


def saliency(held: Subject) -> list[np.ndarray]:
    """interpreto's saliency from our gradient: |word vector x gradient|, averaged over the width."""
    scores = []
    for encoded in held.encoded:
        embeddings, gradient = embedding_gradient(held.clf, held.clf.collate([encoded]), Target())
        scores.append(_words((embeddings * gradient).abs().mean(-1)[0].detach(), encoded))
    return scores


def _words(scores: Any, encoded: Encoded) -> np.ndarray:
    """Without special tokens, which interpreto leaves out."""
    return np.asarray(scores)[list(encoded.free)]


def main() -> None:
    parser = arguments(__doc__ or "", texts=8, repeats=3)
    options = parser.parse_args()
    if not installed():
        sys.exit(f"interpreto is {INSTALL}")
    if options.model is None:
        sys.exit("--model FOLDER is missing: a decoder that classifies, made by `veridical train --model smollm2`.")
    torch.set_num_threads(options.threads)
    held = subject(options.model, options.texts, options.budget)
    peer = Interpreto(held)

    same = saliency(held)
    given = theirs(peer.input_x_gradient(1)())
    apart = max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(same, given, strict=True))
    print(f"interpreto's saliency from our gradient: {apart:.1e} apart at most, of the largest score of a text")

    works, alike = [], {}
    for spec, name in PAIRS.items():
        works.append(Contender(f"Veridical: {spec}", lambda spec=spec: ours(held, spec)))
        peer_runs = {batch: _peer(peer, name, batch) for batch in BATCHES}
        works += [Contender(f"interpreto, {batch} at once: {name}", run) for batch, run in peer_runs.items()]
        pairs = zip(ours(held, spec), theirs(peer_runs[BATCHES[-1]]()), strict=True)
        alike[spec] = [kendall(np.abs(a), np.abs(b)) for a, b in pairs]
    unit, timings = measure(forward_pass(held), works, repeats=options.repeats)
    rows = []
    for spec, name in PAIRS.items():
        taus = [tau for tau in alike[spec] if tau is not None]
        times = [spread(timings[f"Veridical: {spec}"].ratios)]
        times += [spread(timings[f"interpreto, {batch} at once: {name}"].ratios) for batch in BATCHES]
        rows.append((spec, *times, f"{np.mean(taus):.2f} ({min(taus):.2f} to {max(taus):.2f})"))
    head = ("method", "Veridical", *(f"interpreto, {batch} at once" for batch in BATCHES), "tau by size, texts")
    show(f"{options.texts} texts, in forward passes over all of them", head, rows)
    record = {
        "machine": machine(options.threads),
        "saliency_apart": apart,
        "unit_seconds": unit.seconds,
        "ratios": {name: timing.ratios for name, timing in timings.items()},
        "tau": {spec: [float(tau) for tau in taus if tau is not None] for spec, taus in alike.items()},
    }
    print(write_json(options.out / "peer_decoder.json", record))
    print(write_text(options.out / "peer_decoder.md", markdown(head, rows) + "\n"))


def _peer(peer: Interpreto, name: str, batch: int) -> Callable[[], Any]:
    if name == "integrated_gradients":
        return peer.integrated_gradients(batch, STEPS)
    return getattr(peer, name)(batch)


if __name__ == "__main__":
    main()
