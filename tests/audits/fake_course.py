"""The course of an audit that never ran: who left at which look, and where that puts everyone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

LOOKS = (24, 48)  # before the last
CHANCE = ("random", "random:seed=1", "random:seed=2")
SETTINGS = ("delete", "mask", "attention", "words")
LISTS = ("believe", "as_good", "open", "behind", "chance")
Plain = dict[str, Any]


@dataclass(frozen=True)
class Course:
    """Methods best first, with their lists and the texts after which those that left did."""

    corpus: str
    looks: tuple[int, ...]
    order: tuple[str, ...]
    lists: dict[str, str]
    left: dict[str, int]
    nets: dict[str, float]  # over chance

    @property
    def texts(self) -> int:
        return self.looks[-1]

    def n(self, method: str) -> int:
        """Texts that a method explained."""
        return self.left.get(method, self.texts)

    def on(self, name: str) -> list[str]:
        return [method for method in self.order if self.lists[method] == name]


def course(draw: random.Random, corpus: str, methods: Sequence[str], texts: int, jitter: float = 0.0) -> Course:
    """The first is believed, the next is as good, two are open, the last is no better than chance, the others left."""
    looks = (*(look for look in LOOKS if look < texts), texts)
    skill = {name: -k + draw.uniform(-3, 3) * jitter for k, name in enumerate(methods)}
    order = tuple(sorted(methods, key=lambda name: -skill[name]))
    lists = dict.fromkeys(order, "behind")
    for name, method in zip(("believe", "as_good", "open", "open"), order, strict=False):
        lists[method] = name
    if len(order) > 5:
        lists[order[-1]] = "chance"
    behind = [method for method in order if lists[method] == "behind"]
    left = {method: looks[(len(behind) - 1 - k) * len(looks) // len(behind)] for k, method in enumerate(behind)}
    nets = {name: round(0.82 - 0.85 * k / max(1, len(order) - 1), 3) for k, name in enumerate(order)}
    return Course(corpus, looks, order, lists, left, nets)


def passes(method: str) -> float:
    return {"kernel_shap": 493.0, "lime": 304.0, "occlusion": 157.0, "integrated_gradients": 152.0}.get(method, 3.0)


def standings(given: Course, *, enough: bool) -> list[Plain]:
    rows = []
    for k, method in enumerate(given.order):
        few, mean, behind = given.n(method) < 5, given.nets[method], -0.06 * k
        rows.append(
            {
                "corpus": given.corpus, "method": method, "place": k + 1,
                "list": given.lists[method] if enough else None, "clearly": k > 7 and given.lists[method] == "behind",
                "net_first": behind if k else None, "net_first_low": None if few or not k else max(-1, behind - 0.1),
                "net_first_high": None if few or not k else behind + 0.12, "net_chance": mean,
                "net_chance_low": None if few else mean - 0.11, "net_chance_high": None if few else min(1, mean + 0.1),
                "n": given.n(method), "passes": passes(method), "left": given.left.get(method),
                "by": given.order[0] if method in given.left else "",
                "p_behind": 0.000002 * 1.3**k if method in given.left else None,
                "level": 0.00012 if method in given.left else None, "better_than_chance": mean > 0.2,
                "p_chance": 0.00003 * 1.9**k,
            }
        )  # fmt: skip
    return rows


def looks(given: Course) -> list[Plain]:
    rows: list[Plain] = []
    spent = 0.0
    for k, texts in enumerate(given.looks):
        alive = [method for method in given.order if given.n(method) >= texts]
        asked = [m for m in alive if k or len(given.looks) == 1 or passes(m) <= 60]
        spent += (texts - (given.looks[k - 1] if k else 0)) * sum(passes(m) + 12 for m in asked)
        went = [method for method in alive if given.left.get(method) == texts]
        rows.append(
            {
                "corpus": given.corpus, "number": k + 1, "texts": texts, "alive": alive, "asked": asked,
                "dropped": [
                    {
                        "method": m, "by": given.order[0], "texts": texts, "mean": 0.31 + 0.02 * i,
                        "p": 0.000002 * 2**i, "level": 0.00012,
                    }
                    for i, m in enumerate(went)
                ],
                "shown": [
                    {"method": m, "texts": texts, "mean": given.nets[m], "p": 0.00002 * 2**i, "level": 0.0011}
                    for i, m in enumerate(asked) if given.nets[m] > 0.2 and m not in {
                        shown["method"] for earlier in rows for shown in earlier["shown"]
                    }
                ],
                "ended": "last" if texts == given.texts else "", "passes": spent,
            }
        )  # fmt: skip
    return rows


def curves(draw: random.Random, given: Course) -> list[Plain]:
    rows = []
    for method in given.order:
        points = [*range(8, given.n(method), 8), given.n(method)]
        net = [given.nets[method] + draw.uniform(-0.5, 0.5) / count**0.5 for count in points[:-1]]
        net = [*(max(-1.0, min(1.0, value)) for value in net), given.nets[method]]
        wide = [min(1.0, 1.1 / count**0.5) for count in points]
        few = given.n(method) < 5
        rows.append(
            {
                "corpus": given.corpus, "method": method, "texts": points, "net": net,
                "low": [None if few else max(-1, v - w) for v, w in zip(net, wide, strict=True)],
                "high": [None if few else min(1, v + w) for v, w in zip(net, wide, strict=True)],
            }
        )  # fmt: skip
    return rows


def verdict(given: Course, panel: Sequence[str], *, enough: bool) -> Plain:
    lists = {name: given.on(name) if enough else [] for name in LISTS}
    sentence = f"For this model on {given.corpus} believe {given.order[0]}"
    for name, words in (("as_good", "as good (within 60:40)"), ("open", "not told from it"), ("behind", "worse")):
        if lists[name]:
            sentence += f"; {' and '.join(lists[name])} {'is' if len(lists[name]) == 1 else 'are'} {words}"
    if lists["chance"]:
        sentence += f"; do not use {lists['chance'][0]}: no better than chance"
    refused = f"No verdict: {given.texts} texts are too few to say which explanation to believe on {given.corpus}."
    return {
        "corpus": given.corpus,
        **lists,
        "texts": given.texts,
        "enough": enough,
        "sentence": f"{sentence}." if enough else refused,
        "notes": [
            "Behind by more than 60:40: rollout.",
            f"The cheapest of those as good: {given.order[-1]}, 3 passes a text where {given.order[0]} takes 152.",
            "Shown, and without a vote: corr and monotonicity.",
        ],
        "panel": list(panel),
    }


def stability(draw: random.Random, given: Course, panel: Sequence[str]) -> list[Plain]:
    names = given.order[:4]
    subsets = [" + ".join(some) for size in range(1, len(panel) + 1) for some in combinations(panel, size)]
    rows = []
    for kind, texts, asked in (("setting", given.looks[0], SETTINGS), ("subset", given.texts, subsets)):
        for name in asked:
            others = draw.sample(range(2, len(names) + 1), len(names) - 1)
            places = [1, *others] if draw.random() < 0.7 else [*others, 1]
            rows += [
                {
                    "corpus": given.corpus, "method": method, "kind": kind, "name": name, "place": place,
                    "of": len(names), "texts": texts,
                }
                for method, place in zip(names, places, strict=True)
            ]  # fmt: skip
    return rows


def spending(given: Course) -> Plain:
    each = sum(passes(method) + 12 for method in given.order)
    return {
        "corpus": given.corpus, "budget": 90_000, "planned": min(90_000, 96.0 * each),
        "spent": looks(given)[-1]["passes"] + 400, "stability": 400.0,
        "fixed": float(given.texts * each), "seconds_a_pass": 0.0123, "without": ["shapley:samples=200"],
    }  # fmt: skip
