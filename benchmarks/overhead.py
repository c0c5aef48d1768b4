"""What the scheduler adds: the metric stage of an audit against the bare forward passes that it needs.

The stage gets explanations that are already there and returns (and stores) every score of them. Bare are the distinct
questions behind those scores, each once, sorted by length over all texts, padded beforehand, through the model itself.
Random draws of soft erasure, rankings, erasing, padding, statistics and files are all on the stage's side.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any
from unittest.mock import patch

import torch

import veridical
from benchmarks.results import machine, markdown, show, write_json, write_text
from benchmarks.subject import Subject, arguments, mean_length, subject
from benchmarks.timing import clock
from veridical.attribution import methods
from veridical.core.records import Attribution, Variant
from veridical.explanations.explain import attributions
from veridical.metric import metrics
from veridical.model import ask
from veridical.model.ask import batches_of

METHODS = (
    "attention",
    "rollout",
    "attention_x_gradient",
    "gradient",
    "input_x_gradient",
    "integrated_gradients",
    "occlusion",
    "random",
)
OVERHEAD, WASTE = 1.25, 1.10


@dataclass
class Watch:
    """What went through the model."""

    asked: dict[Variant, None] = field(default_factory=dict)
    sequences: int = 0
    padded: int = 0  # tokens, padding included
    real: int = 0


@dataclass(frozen=True, slots=True)
class Overhead:
    """Of one stage. Ratios are wall time over the mean of the bare passes right before and after."""

    texts: int
    distinct: int  # questions
    sequences: int  # put through the model for them
    waste: float  # padded tokens over real ones
    bare: tuple[float, ...]  # seconds
    ratios: tuple[float, ...]
    processor: tuple[float, ...]  # the same of processor time, which other work on the machine disturbs less

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)


def applying() -> list[str]:
    """Every metric that needs neither rationales nor planted truth."""
    return [metric.name for metric in metrics if not {"rationale", "planted"} & metric.needs]


def explained(subject: Subject, specs: Sequence[str] = METHODS) -> list[Attribution]:
    return [
        a
        for spec in specs
        for a in attributions(subject.clf, subject.encoded, methods.choose(spec), budget=subject.budget)
    ]


def stage(subject: Subject, given: Sequence[Attribution], measures: Sequence[str]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return veridical.evaluate(
            subject.clf, subject.examples, [], measures, explanations=given, out=folder, budget=subject.budget
        )


@contextmanager
def watched(subject: Subject) -> Iterator[Watch]:
    """Counts what the model is given inside, and keeps the questions."""
    seen = Watch()
    real = ask.answer

    def answer(clf: Any, variants: Sequence[Variant], *rest: Any) -> Any:
        seen.asked.update(dict.fromkeys(variants))
        return real(clf, variants, *rest)

    def count(module: Any, args: tuple, inputs: dict[str, Any]) -> None:
        seen.sequences += len(inputs["input_ids"])
        seen.padded += inputs["input_ids"].numel()
        seen.real += int(inputs["attention_mask"].sum())

    handle = subject.clf.model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        with patch.object(ask, "answer", answer):
            yield seen
    finally:
        handle.remove()


def bare_passes(subject: Subject, variants: Sequence[Variant]) -> list[dict[str, torch.Tensor]]:
    """The model's inputs for all of them, length-sorted and padded."""
    batches = []
    for rows in batches_of([len(v.ids) for v in variants], subject.budget):
        batch = subject.clf.collate_variants([variants[i] for i in rows])
        batches.append({"input_ids": batch.ids, "attention_mask": batch.mask.long(), "token_type_ids": batch.types})
    return batches


def overhead(subject: Subject, measures: Sequence[str], repeats: int) -> Overhead:
    given = explained(subject)
    with watched(subject) as seen:  # also warms both up
        stage(subject, given, measures)
    # The whole texts are asked about too, for the probabilities every metric starts from.
    intact = [Variant(e.ids, e.types) for e in subject.encoded]
    needed = list(dict.fromkeys([*intact, *seen.asked]))
    passes = bare_passes(subject, needed)

    def bare() -> None:
        with torch.inference_mode():
            for inputs in passes:
                subject.clf.model(**inputs)

    units, taken = [clock(bare)], []
    for _ in range(repeats):
        taken.append(clock(lambda: stage(subject, given, measures)))
        units.append(clock(bare))
    wall, processor = (
        tuple(2 * own[i] / (a[i] + b[i]) for own, a, b in zip(taken, units, units[1:], strict=False)) for i in (0, 1)
    )
    return Overhead(
        texts=len(subject.encoded),
        distinct=len(needed),
        sequences=seen.sequences,
        waste=seen.padded / seen.real,
        bare=tuple(seconds for seconds, _ in units),
        ratios=wall,
        processor=processor,
    )


def table(found: Overhead) -> tuple[list[str], list[list[str]]]:
    def spread(values: Sequence[float]) -> str:
        return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    def verdict(values: Sequence[float], bound: float) -> str:
        """A bound inside the spread says that the machine was too busy, not that it holds."""
        return "yes" if max(values) <= bound else "NO" if min(values) > bound else "cannot be told"

    head = ["", "at most", "found", "holds"]
    return head, [
        [
            "metric stage over bare passes, wall time",
            f"{OVERHEAD}",
            spread(found.ratios),
            verdict(found.ratios, OVERHEAD),
        ],
        ["the same, processor time", f"{OVERHEAD}", spread(found.processor), verdict(found.processor, OVERHEAD)],
        ["sequences run per distinct question", "", f"{found.sequences / found.distinct:.3f}", ""],
        ["padded tokens per real token", f"{WASTE:.2f}", f"{found.waste:.3f}", verdict([found.waste], WASTE)],
    ]


def main() -> None:
    given = arguments(__doc__ or "", texts=16, repeats=3).parse_args()
    torch.set_num_threads(given.threads)
    held = subject(given.model, given.texts, given.budget)
    measures = applying()
    found = overhead(held, measures, given.repeats)
    show(f"{found.texts} texts, {len(METHODS)} methods, {found.distinct:,} distinct questions", *table(found))
    record = {
        "machine": machine(given.threads),
        "mean_tokens": mean_length(held.encoded),
        "budget": held.budget,
        "methods": METHODS,
        "metrics": measures,
        **asdict(found),
        "ratio": found.ratio,
    }
    print(write_json(given.out / "overhead.json", record))
    print(write_text(given.out / "overhead.md", markdown(*table(found)) + "\n"))


if __name__ == "__main__":
    main()
