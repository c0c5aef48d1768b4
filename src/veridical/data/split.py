"""Which split a text belongs to, and samples of a split: by stable hashes, so that no text moves another."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Sequence

from veridical.core.records import Example
from veridical.core.seed import seed_of


def normalised(text: str) -> str:
    """The letters and digits of a text, case folded: what near-duplicates have in common."""
    text = html.unescape(text)
    return re.sub(r"[\W_]+", "", text.casefold()) or text.strip()


def text_mark(text: str) -> str:
    """Equal for near-duplicates, and much shorter than a text: what a run keeps of those that it was trained on."""
    return f"{seed_of('mark', normalised(text)):016x}"


def fold(text: str, *salt: object) -> float:
    """A stable number in [0, 1) of the normalised text: the same for near-duplicates."""
    return seed_of("fold", *salt, normalised(text)) / 2**63


def side(text: str, *salt: object) -> str:
    """train, dev or test (80, 10, 10%) by the normalised text alone."""
    place = fold(text, *salt)
    return "train" if place < 0.8 else "dev" if place < 0.9 else "test"


def carve_dev(train: Sequence[Example], share: float) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Train without, and dev with, the given share (at least one) of the distinct normalised texts."""
    groups = sorted({normalised(ex.text) for ex in train}, key=lambda text: fold(text, "dev"))
    held = set(groups[: max(1, round(share * len(groups)))]) if len(groups) > 1 and share > 0 else set()
    inside = [normalised(ex.text) in held for ex in train]
    kept = tuple(ex for ex, taken in zip(train, inside, strict=True) if not taken)
    return kept, tuple(ex for ex, taken in zip(train, inside, strict=True) if taken)


def sample(examples: Sequence[Example], limit: int, seed: int) -> tuple[Example, ...]:
    """At most `limit` examples, every label with its share (largest remainders), in their own order."""
    if limit >= len(examples):
        return tuple(examples)
    by_label: dict[object, list[int]] = defaultdict(list)
    for index, ex in enumerate(examples):
        by_label[ex.label].append(index)
    exact = {label: limit * len(members) / len(examples) for label, members in by_label.items()}
    quota = {label: int(value) for label, value in exact.items()}
    largest = sorted(exact, key=lambda label: (quota[label] - exact[label], str(label)))
    for label in largest[: limit - sum(quota.values())]:
        quota[label] += 1
    chosen: set[int] = set()
    for label, members in by_label.items():
        members.sort(key=lambda index: seed_of("sample", seed, examples[index].id))
        chosen.update(members[: quota[label]])
    return tuple(ex for index, ex in enumerate(examples) if index in chosen)


def spread(examples: Sequence[Example], seed: int) -> tuple[Example, ...]:
    """All of them in a seeded order in which the first n, whatever n is, have every label with its share."""
    by_label: dict[object, list[Example]] = defaultdict(list)
    for ex in examples:
        by_label[ex.label].append(ex)
    places: list[tuple[float, str, Example]] = []
    for label, members in by_label.items():
        members.sort(key=lambda ex: seed_of("sample", seed, ex.id))
        places += [((rank + 0.5) / len(members), str(label), ex) for rank, ex in enumerate(members)]
    return tuple(ex for _, _, ex in sorted(places, key=lambda place: place[:2]))
