"""Guides of REGEX's explanation-guided training: what each costs, and how near it is to the paper's.

The paper guides attention by integrated gradients with 50 steps, L2 over dimensions. A guide acts through the shares it
gives the tokens (the KL target) and through the tokens it has masked, so both are compared, text by text.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.results import machine, markdown, show, write_json, write_text
from benchmarks.subject import Subject, arguments, forward_pass, mean_length, subject
from benchmarks.timing import Contender, Timing, measure
from veridical.attribution import methods
from veridical.metric.agreement import kendall
from veridical.model.ask import batches_of
from veridical.training.term.explanation_guided import GUIDE, importance, lowest

PAPER = "integrated_gradients:steps=50:aggregate=l2"
GUIDES = (
    PAPER,
    *(f"integrated_gradients:steps={steps}:aggregate=l2" for steps in (8, 5, 4, 3, 2, 1)),
    "deeplift:aggregate=l2",
    "frozen_gradient",
    "input_x_gradient:aggregate=l2",
    "input_x_gradient:aggregate=abs",
    "gradient",
)
RATIO = 0.15  # of the tokens, masked


@dataclass(frozen=True, slots=True)
class Guide:
    """One guide: passes per text, time in forward passes, and what sets it apart from the paper's, mean over texts."""

    spec: str
    forward: float
    backward: float
    ratio: float
    tau: float  # Kendall's, of the tokens' order
    divergence: float  # KL(paper's shares || these), in nats
    masked: float  # Jaccard index of the tokens that are masked


def shares(held: Subject, spec: str) -> list[np.ndarray]:
    """Each text's guide over its free tokens, summing to 1, for the class the model predicts."""
    clf, encoded, choice = held.clf, held.encoded, methods.choose(spec)
    found: dict[int, np.ndarray] = {}
    with clf.eager():
        for rows in batches_of([len(e.ids) for e in encoded], held.budget):
            batch = clf.collate([encoded[i] for i in rows])
            with torch.no_grad():
                classes = clf.forward(batch).logits.argmax(-1)
            scores = importance(clf, batch, classes, choice)
            for row, index in enumerate(rows):
                own = scores[row][batch.free[row]].double().numpy()
                found[index] = own / own.sum()
    return [found[i] for i in range(len(encoded))]


def compared(held: Subject, spec: str, paper: list[np.ndarray], timing: Timing) -> Guide:
    before = held.clf.forwards, held.clf.backwards
    found = shares(held, spec)
    texts = len(held.encoded)
    forward, backward = held.clf.forwards - before[0], held.clf.backwards - before[1]
    taus = [kendall(a, b) for a, b in zip(paper, found, strict=True)]
    gone = [
        [set(lowest(x, np.ones(len(x), dtype=bool), RATIO)) for x in pair] for pair in zip(paper, found, strict=True)
    ]
    return Guide(
        spec=spec,
        forward=forward / texts - 1,  # the pass that finds the class is none of the guide's
        backward=backward / texts,
        ratio=timing.ratio,
        tau=float(np.mean([tau for tau in taus if tau is not None])),
        divergence=float(
            np.mean([(a * np.log(a / np.maximum(b, 1e-8))).sum() for a, b in zip(paper, found, strict=True)])
        ),
        masked=float(np.mean([len(a & b) / len(a | b) for a, b in gone])),
    )


def table(guides: list[Guide]) -> tuple[list[str], list[list[str]]]:
    head = ["guide", "passes forward", "and back", "time in forward passes", "tau", "KL", "masked alike"]
    default = GUIDE.replace("/", ":")
    body = [
        [
            f"{g.spec} (default)" if g.spec == default else g.spec,
            f"{g.forward:.0f}",
            f"{g.backward:.0f}",
            f"{g.ratio:.1f}",
            f"{g.tau:.2f}",
            f"{g.divergence:.3f}",
            f"{g.masked:.2f}",
        ]
        for g in guides
    ]
    return head, body


def main() -> None:
    given = arguments(__doc__ or "", texts=64, repeats=3).parse_args()
    torch.set_num_threads(given.threads)
    held = subject(given.model, given.texts, given.budget)
    contenders = [Contender(spec, lambda spec=spec: shares(held, spec)) for spec in GUIDES]
    unit, timings = measure(forward_pass(held), contenders, repeats=given.repeats)
    paper = shares(held, PAPER)
    guides = [compared(held, spec, paper, timings[spec]) for spec in GUIDES]
    show("Guides against integrated gradients with 50 steps", *table(guides))
    found = {
        "machine": machine(given.threads),
        "texts": len(held.encoded),
        "mean_tokens": mean_length(held.encoded),
        "budget": held.budget,
        "unit": dataclasses.asdict(unit),
        "guides": [dataclasses.asdict(guide) for guide in guides],
    }
    print(write_json(given.out / "regex_guides.json", found))
    print(write_text(given.out / "regex_guides.md", f"## Guides of REGEX\n\n{markdown(*table(guides))}\n"))


if __name__ == "__main__":
    main()
