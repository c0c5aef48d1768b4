"""Token budgets compared: how long a forward pass and a gradient take with batches of at most so many tokens."""

from __future__ import annotations

import dataclasses

import torch

from benchmarks.explain import ours
from benchmarks.results import machine, show, write_json
from benchmarks.subject import arguments, forward_pass, subject
from benchmarks.timing import Contender, measure

BUDGETS = (256, 512, 1024, 2048, 4096)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)), help="(default: %(default)s)")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    held = subject(given.model, given.texts, given.budget)
    contenders = []
    for budget in (int(text) for text in given.budgets.split(",")):
        own = dataclasses.replace(held, budget=budget)
        contenders.append(Contender(f"forward, {budget}", forward_pass(own).run))
        contenders.append(Contender(f"gradient, {budget}", ours(own, "gradient").run))
    unit, timings = measure(forward_pass(held), contenders, repeats=given.repeats)
    rows = [[t.name, f"{t.ratio:.2f}", f"{t.spread[0]:.2f} to {t.spread[1]:.2f}"] for t in timings.values()]
    show(f"{given.texts} texts, multiples of a forward pass with {held.budget}", ["", "ratio", "spread"], rows)
    found = {
        "machine": machine(given.threads),
        "texts": given.texts,
        "unit": dataclasses.asdict(unit),
        "timings": [{**dataclasses.asdict(t), "ratio": t.ratio} for t in timings.values()],
    }
    print(write_json(given.out / f"budgets-{given.texts}.json", found))


if __name__ == "__main__":
    main()
