"""Explanation methods as multiples of one forward pass over the same texts, beside Captum and interpreto.

Texts are tokenised beforehand on every side. The unit is the bare model over all texts without gradients, in
length-sorted batches of the same token budget that everybody's batches keep to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.accuracy import Accuracy, Judge
from benchmarks.peer_captum import Captum, Scores
from benchmarks.peer_interpreto import INSTALL, Interpreto, installed
from benchmarks.results import machine, markdown, show, spread, write_json, write_text
from benchmarks.subject import Subject, arguments, forward_pass, mean_length, subject
from benchmarks.timing import Contender, Timing, measure
from veridical.attribution import methods
from veridical.core.progress import Report
from veridical.explanations.explain import attributions

IG = "integrated_gradients"
ADAPTIVE = f"{IG}:rule=adaptive"
OURS = ("input_x_gradient", "gradient", IG, ADAPTIVE, "occlusion", "occlusion:by=mask", "attention", "rollout")
UNBOUNDED = ("deeplift", "smoothgrad", "lime", "kernel_shap")  # for information, fewer repeats: the last two are long
VERIDICAL, BATCHED, SINGLE, INTERPRETO = "Veridical", "Captum, batched", "Captum, one by one", "interpreto"
AGREE = 1e-5  # of the largest score


@dataclass(frozen=True, slots=True)
class Row:
    """One method: everybody's timing, and what Veridical's ratio may be at most."""

    method: str
    timings: dict[str, Timing]
    bound: float | None
    why: str = ""  # where the bound comes from

    @property
    def holds(self) -> bool | None:
        return None if self.bound is None else self.timings[VERIDICAL].ratio <= self.bound


def ours(subject: Subject, spec: str) -> Contender:
    run = partial(attributions, subject.clf, choice=methods.choose(spec), budget=subject.budget)
    return Contender(f"{VERIDICAL}: {spec}", lambda: run(subject.encoded), lambda: run(subject.encoded[:2]))


def captums(subject: Subject) -> dict[tuple[str, str], Contender]:
    captum = Captum(subject)
    found = {}
    for method, run in (
        ("input_x_gradient", captum.input_x_gradient),
        ("gradient", captum.gradient),
        (IG, captum.integrated_gradients),
    ):
        for who, batches in ((BATCHED, captum.batched), (SINGLE, captum.single)):
            found[method, who] = Contender(f"{who}: {method}", partial(run, batches), partial(run, batches[-1:]))
    return found


def interpretos(subject: Subject) -> dict[tuple[str, str], Contender]:
    """With one text at a time for gradients, which suits it best (it runs backward once per text of a batch), and
    with batches of 16 where it only runs forward."""
    peer = Interpreto(subject)
    return {
        (method, INTERPRETO): Contender(f"{INTERPRETO}: {method}", run)
        for method, run in (
            ("input_x_gradient", peer.input_x_gradient(1)),
            (IG, peer.integrated_gradients(16)),
            ("occlusion:by=mask", peer.occlusion(16)),
        )
    }


def disagreement(own: Scores, other: Scores) -> float:
    """The largest difference of two sets of scores, as a share of the largest score."""
    largest = max(float(np.abs(scores).max()) for scores in own)
    return max(float(np.abs(a - b).max()) for a, b in zip(own, other, strict=True)) / largest


def check(subject: Subject, peers: dict[tuple[str, str], Contender]) -> dict[str, float]:
    """Whatever of Captum is timed computes the same scores; anything else would not be a comparison."""
    found = {}
    for (method, _), contender in peers.items():
        own = [a.scores for a in ours(subject, method).run()]  # type: ignore[attr-defined]
        found[contender.name] = apart = disagreement(own, contender.run())  # type: ignore[arg-type]
        if apart > AGREE:
            raise RuntimeError(f"{contender.name} differs from Veridical's by {apart:.1e} of the largest score.")
    return found


def variants(subject: Subject) -> float:
    """How many different inputs occlusion asks about per text: the text, and the text without each of its tokens."""
    return float(
        np.mean(
            [
                len({e.ids, *(e.ids[:i] + e.ids[i + 1 :] for i, free in enumerate(e.free) if free)})
                for e in subject.encoded
            ]
        )
    )


def bounds(subject: Subject, timings: dict[tuple[str, str], Timing]) -> dict[str, tuple[float, str]]:
    better = min(timings[IG, BATCHED].ratio, timings[IG, SINGLE].ratio)
    asked = variants(subject)
    return {
        "input_x_gradient": (2.5, "a forward and a backward pass"),
        "gradient": (2.5, "a forward and a backward pass"),
        IG: (better, "the better of Captum's two"),
        ADAPTIVE: (25.0, "half the work of the 50 steps, at the same completeness"),
        "occlusion": (1.1 * asked, f"1.1 x {asked:.1f} distinct variants per text"),
        "attention": (1.5, "one forward pass that returns attention"),
        "rollout": (1.5, "one forward pass that returns attention"),
    }


def measured(subject: Subject, repeats: int, slow: int) -> tuple[Timing, list[Row], dict[str, float]]:
    """The unit, a row per method, and how far Captum's scores were from ours."""
    captum = captums(subject)
    apart = check(subject, captum)
    contenders = {
        **{(spec, VERIDICAL): ours(subject, spec) for spec in OURS},
        **captum,
        **(interpretos(subject) if installed() else {}),
    }
    free = {(spec, VERIDICAL): ours(subject, spec) for spec in UNBOUNDED}
    unit = forward_pass(subject)
    work = len(contenders) * (repeats + 1) + len(free) * (slow + 1) + 2
    with Report("explain", work) as report:
        base, first = measure(unit, list(contenders.values()), repeats=repeats, tick=report.advance)
        _, second = measure(unit, list(free.values()), repeats=slow, tick=report.advance)
    by_name = {**first, **second}
    timings = {key: by_name[contender.name] for key, contender in {**contenders, **free}.items()}
    limits = bounds(subject, timings)
    rows = []
    for method in (*OURS, *UNBOUNDED):
        own = {who: timing for (spec, who), timing in timings.items() if spec == method}
        bound, why = limits.get(method, (None, ""))
        rows.append(Row(method, own, bound, why))
    return base, rows, apart


def accuracies(subject: Subject, tolerances: Sequence[float], repeats: int) -> list[tuple[Accuracy, Timing]]:
    """Adaptive rules of several tolerances, Gauss with as many nodes as the default adaptive rule takes on average
    and with 50: errors and times."""
    judge = Judge(subject)
    default = judge(ADAPTIVE)
    same = max(1, round(default.nodes))
    specs = [f"{ADAPTIVE}:tolerance={t:g}" for t in tolerances]
    specs = list(dict.fromkeys([ADAPTIVE, *specs, f"{IG}:steps={same}", IG]))
    found = [default, *(judge(spec) for spec in specs[1:])]
    _, timings = measure(forward_pass(subject), [ours(subject, spec) for spec in specs], repeats=repeats)
    return [(accuracy, timings[f"{VERIDICAL}: {accuracy.spec}"]) for accuracy in found]


def cell(timing: Timing | None) -> str:
    if timing is None:
        return "-"
    return spread(timing.ratios)


def timing_table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    head = ["method", "Veridical at most", VERIDICAL, "holds", BATCHED, SINGLE, INTERPRETO]
    verdict = {True: "yes", False: "NO", None: ""}
    body = []
    for row in rows:
        bound = "" if row.bound is None else f"{row.bound:.2f} ({row.why})"
        others = [cell(row.timings.get(who)) for who in (BATCHED, SINGLE, INTERPRETO)]
        body.append([row.method, bound, cell(row.timings[VERIDICAL]), verdict[row.holds], *others])
    if not installed():
        body[0][-1] = INSTALL
    return head, body


def accuracy_table(found: Sequence[tuple[Accuracy, Timing]]) -> tuple[list[str], list[list[str]]]:
    head = ["rule", "nodes per text", "forward passes", "gap: mean", "gap: max", "distance: mean", "distance: max"]
    body = [
        [
            accuracy.spec,
            f"{accuracy.nodes:.1f}",
            cell(timing),
            f"{accuracy.gap_mean:.1e}",
            f"{accuracy.gap_max:.1e}",
            f"{accuracy.distance_mean:.2%}",
            f"{accuracy.distance_max:.2%}",
        ]
        for accuracy, timing in found
    ]
    return head, body


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--slow-repeats", type=int, default=2, help="of methods without a bound (%(default)s)")
    parser.add_argument(
        "--tolerances", default="0.02,0.05,0.1,0.2", help="of the adaptive rule, compared (default: %(default)s)"
    )
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    held = subject(given.model, given.texts, given.budget)
    tolerances = [float(text) for text in given.tolerances.split(",") if text]
    unit, rows, apart = measured(held, given.repeats, given.slow_repeats)
    rules = accuracies(held, tolerances, given.slow_repeats)
    tables = {"Multiples of one forward pass": timing_table(rows), "Integrated gradients": accuracy_table(rules)}
    for title, (head, body) in tables.items():
        show(title, head, body)
    found: dict[str, Any] = {
        "machine": machine(given.threads),
        "texts": len(held.encoded),
        "mean_tokens": mean_length(held.encoded),
        "budget": held.budget,
        "unit": dataclasses.asdict(unit),
        "captum_differs_by": apart,
        "rows": [
            {
                "method": row.method,
                "bound": row.bound,
                "why": row.why,
                "holds": row.holds,
                "timings": {who: {**dataclasses.asdict(t), "ratio": t.ratio} for who, t in row.timings.items()},
            }
            for row in rows
        ],
        "rules": [{**dataclasses.asdict(a), "ratio": t.ratio, "ratios": t.ratios} for a, t in rules],
    }
    print(write_json(given.out / "explain.json", found))
    page = "\n\n".join(f"## {title}\n\n{markdown(*table)}" for title, table in tables.items())
    print(write_text(given.out / "explain.md", page + "\n"))


if __name__ == "__main__":
    main()
