"""A whole evaluation against the same one written as a loop over texts, and against interpreto's metrics.

Every side computes the same numbers (checked before anything is timed) on the same model, texts and classes. Times are
multiples of one forward pass over the texts; what counts is how many times longer the others take.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch

import veridical
from benchmarks import peer_curves
from benchmarks.peer_interpreto import INSTALL, installed
from benchmarks.peer_loop import Loop
from benchmarks.results import machine, markdown, show, write_json, write_text
from benchmarks.subject import Subject, arguments, forward_pass, mean_length, subject
from benchmarks.timing import Contender, Timing, measure
from veridical.attribution import methods
from veridical.core.progress import Report
from veridical.core.records import Attribution
from veridical.explanations.explain import attributions

VERIDICAL, SINGLE, TOGETHER, INTERPRETO = "Veridical", "loop, one by one", "loop, batched per text", "interpreto"
BOUND = 5.0
AGREE = 1e-4
BATCH = 16  # of interpreto; its default is 4

# The parts of the evaluation: what the loops do one after the other and Veridical in one go.
PARTS = {
    "sufficiency and comprehensiveness": ("sufficiency", "comprehensiveness"),
    "decision flip": ("decision_flip",),
    "monotonicity": ("monotonicity",),
    "leave-one-out (corr, loo_tau)": ("corr", "loo_tau"),
}
EXPLAIN, WHOLE, CURVES = "explanations", "the whole evaluation", "deletion and insertion curves"


def explain(subject: Subject, specs: Sequence[str]) -> list[Attribution]:
    """Explanations by all methods, method after method."""
    found = []
    for spec in specs:
        found += attributions(subject.clf, subject.encoded, methods.choose(spec), budget=subject.budget)
    return found


def evaluate(subject: Subject, given: Sequence[Attribution], measures: Sequence[str]) -> veridical.Evaluation:
    return veridical.evaluate(subject.clf, subject.examples, [], measures, explanations=given, budget=subject.budget)


def check(subject: Subject, loop: Loop, given: Sequence[Attribution]) -> float:
    """The largest difference between the loop's numbers and ours; too large a one is an error."""
    texts = len(subject.encoded)
    apart = 0.0
    for number, (spec, run) in enumerate(loop.methods.items()):
        own = given[number * texts : (number + 1) * texts]
        largest = max(float(np.abs(a.scores).max()) for a in own)
        differences = [float(np.abs(a.scores - theirs).max()) for a, theirs in zip(own, run(), strict=True)]
        apart = max(apart, _agree(spec, max(differences) / largest))
    names = [name for part in PARTS.values() for name in part]
    cells = {(c.metric, c.method, c.example): c.score.value for c in evaluate(subject, given, names).cells}
    for name in names:
        for a in given:
            own, theirs = cells[name, a.method, a.example.id], loop.metrics[name](a)
            if own is None or theirs is None:
                _agree(f"{name} of {a.method}", 0.0 if own is theirs else float("inf"))
            else:
                apart = max(apart, _agree(f"{name} of {a.method} on {a.example.id}", abs(own - theirs)))
    return apart


def check_curves(own: peer_curves.Areas, theirs: peer_curves.Areas) -> float:
    return max(
        _agree(f"interpreto's {name}", abs(a - b)) for name in own for a, b in zip(own[name], theirs[name], strict=True)
    )


def _agree(what: str, apart: float) -> float:
    if not apart <= AGREE:
        raise RuntimeError(f"{what}: the loop and Veridical differ by {apart:.1e}.")
    return apart


def run_all(loop: Loop, names: Sequence[str], given: Sequence[Attribution]) -> None:
    for a in given:
        for name in names:
            loop.metrics[name](a)


def contenders(
    subject: Subject, loops: dict[str, Loop], given: Sequence[Attribution]
) -> dict[tuple[str, str], Contender]:
    """Everything to be timed, by part and side. The loops' whole evaluation is the sum of their parts."""
    specs = list(loops[SINGLE].methods)
    everything = [name for part in PARTS.values() for name in part]

    def whole() -> object:
        return veridical.evaluate(subject.clf, subject.examples, specs, everything, budget=subject.budget)

    work: dict[tuple[str, str], Callable[[], object]] = {
        (EXPLAIN, VERIDICAL): partial(explain, subject, specs),
        (WHOLE, VERIDICAL): whole,
    }
    for part, names in PARTS.items():
        work[part, VERIDICAL] = partial(evaluate, subject, given, names)
    for who, loop in loops.items():
        work[EXPLAIN, who] = lambda loop=loop: [run() for run in loop.methods.values()]
        for part, names in PARTS.items():
            work[part, who] = partial(run_all, loop, names, given)
    if installed():
        work[CURVES, VERIDICAL] = partial(peer_curves.ours, subject, given)
        work[CURVES, INTERPRETO] = peer_curves.Curves(subject, given, BATCH)
    return {key: Contender(f"{key[1]}: {key[0]}", run) for key, run in work.items()}


def ratios(timings: dict[tuple[str, str], Timing]) -> dict[tuple[str, str], tuple[float, ...]]:
    """Multiples of a forward pass, a value per repeat, for every part and side and for the whole."""
    found = {key: timing.ratios for key, timing in timings.items()}
    for who in (SINGLE, TOGETHER):
        parts = [timings[part, who].ratios for part in (EXPLAIN, *PARTS)]
        found[WHOLE, who] = tuple(map(sum, zip(*parts, strict=True)))
    return found


def table(found: dict[tuple[str, str], tuple[float, ...]]) -> tuple[list[str], list[list[str]]]:
    head = ["part", f"{VERIDICAL}, forward passes", SINGLE, TOGETHER, INTERPRETO]
    body = []
    for part in (EXPLAIN, *PARTS, WHOLE, CURVES):
        own = found.get((part, VERIDICAL))
        row = [part, "-" if own is None else f"{np.median(own):.0f}"]
        for who in (SINGLE, TOGETHER, INTERPRETO):
            theirs = found.get((part, who))
            if own is None or theirs is None:
                row.append(INSTALL if part == CURVES and who == INTERPRETO else "-")
                continue
            times = np.array(theirs) / np.array(own)  # of the same repeat
            row.append(f"{np.median(times):.1f} times ({times.min():.1f} to {times.max():.1f})")
        body.append(row)
    return head, body


def main() -> None:
    given = arguments(__doc__ or "", texts=8, repeats=3).parse_args()
    torch.set_num_threads(given.threads)
    held = subject(given.model, given.texts, given.budget)
    loops = {SINGLE: Loop(held, together=False), TOGETHER: Loop(held, together=True)}
    scores = explain(held, list(loops[SINGLE].methods))
    apart = {who: check(held, loop, scores) for who, loop in loops.items()}
    work = contenders(held, loops, scores)
    if installed():
        apart[INTERPRETO] = check_curves(work[CURVES, VERIDICAL].run(), work[CURVES, INTERPRETO].run())  # type: ignore
    with Report("audit", len(work) * (given.repeats + 1) + 1) as report:
        unit, by_name = measure(forward_pass(held), list(work.values()), repeats=given.repeats, tick=report.advance)
    timings = {key: by_name[contender.name] for key, contender in work.items()}
    found = ratios(timings)
    head, body = table(found)
    show(f"{given.texts} texts, {len(loops[SINGLE].methods)} methods: how many times longer", head, body)
    record = {
        "machine": machine(given.threads),
        "texts": given.texts,
        "mean_tokens": mean_length(held.encoded),
        "methods": list(loops[SINGLE].methods),
        "unit": dataclasses.asdict(unit),
        "differs_by": apart,
        "bound": BOUND,
        "holds": {
            who: bool(np.median(np.array(found[WHOLE, who]) / found[WHOLE, VERIDICAL]) >= BOUND) for who in loops
        },
        "timings": [{"part": part, "who": who, **dataclasses.asdict(t)} for (part, who), t in timings.items()],
    }
    print(write_json(given.out / "audit.json", record))
    print(write_text(given.out / "audit.md", markdown(head, body) + "\n"))


if __name__ == "__main__":
    main()
