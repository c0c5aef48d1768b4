"""A world: texts whose rule is known, and the model that is to learn it.

There is one for every rule, number of copies and shortcut, and every seed. The models take turns along each of these,
so that none of them stands for a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

from veridical.core import store, stored
from veridical.core.records import Example
from veridical.core.seed import seed_of
from veridical.core.settings import build
from veridical.data.planted import Rule
from veridical.data.split import sample

RULES: tuple[Rule, ...] = ("single", "conjunction", "order")
SPEC, STAMP = "spec.json", "stamp.json"


@dataclass(frozen=True)
class Setting:
    """What all worlds of a folder share."""

    models: tuple[str, ...]  # which take turns
    methods: tuple[str, ...]  # of which a world has those that work on its model
    metrics: tuple[str, ...]  # of order alone: the three random orders are chance for every method
    shaped: tuple[str, ...]  # that see more of the scores than their order: every method is shuffled for them
    texts: int  # that a world's audit may ask about
    dear_texts: int  # the first of them: those on which soft metrics and monotonicity are asked for
    size: int  # training texts
    length: int  # clauses of a text, about
    learnt: float  # dev accuracy at which training ends
    epochs: int  # at most

    def write(self, out: Path) -> None:
        store.claim(out, self.spec)
        for path, value in ((out / SPEC, self.spec), (out / STAMP, store.stamp())):
            if not path.exists():
                store.write_json(path, value)

    @property
    def spec(self) -> dict[str, Any]:
        return {"validate": store.plain(self)}

    @classmethod
    def read(cls, out: str | Path) -> Setting:
        return build(cls, stored.read_fields(Path(out) / SPEC, "validate")["validate"])


@dataclass(frozen=True)
class World:
    """One of them."""

    rule: Rule
    copies: int
    shortcut: float
    seed: int
    model: str

    @property
    def key(self) -> str:
        return f"seed{self.seed}/{self.rule}-copies{self.copies}-shortcut{self.shortcut:g}"

    def data(self, setting: Setting) -> str:
        """Its texts, as `--data` takes them."""
        return (
            f"planted:rule={self.rule}:copies={self.copies}:size={setting.size}:length={setting.length}"
            f":shortcut={self.shortcut:g}:seed={self.seed}"
        )

    @property
    def truth(self) -> Literal["truth", "truth:abs=true"]:
        """The metric that knows. Where the order decides, one of the two words may argue against the class: its score
        is then as large as the other's, and negative."""
        return "truth:abs=true" if self.rule == "order" else "truth"


def worlds(
    seeds: Sequence[int],
    models: Sequence[str],
    rules: Sequence[Rule],
    copies: Sequence[int],
    shortcuts: Sequence[float],
) -> Iterator[World]:
    """Seed by seed. Worlds that differ in one thing only, by one step, have different models."""
    for seed, rule, count, share in product(seeds, rules, copies, shortcuts):
        turn = seed + RULES.index(rule) + count - 1 + (share > 0)
        yield World(rule, count, share, seed, models[turn % len(models)])


def audited(examples: Sequence[Example], count: int, seed: int) -> list[Example]:
    """A seeded sample in the order in which an audit looks at it: shuffled within labels, the labels in turn.

    Texts that the model gets wrong are among them, as they are in an audit of a model that nobody knows the truth of.
    """
    chosen = sorted(sample(examples, count, seed), key=lambda e: seed_of("validate", seed, e.id))
    place: dict[object, int] = {}
    turns: list[tuple[int, str, Example]] = []
    for example in chosen:
        place[example.label] = place.get(example.label, -1) + 1
        turns.append((place[example.label], str(example.label), example))
    return [example for _, _, example in sorted(turns, key=lambda turn: turn[:2])]
