"""One convention for seeds, whichever verb."""

from __future__ import annotations

from typing import Any

import pytest

from veridical.cli.app import VERBS, verb
from veridical.core.errors import InputError

SEVERAL = {
    "train": ["--data", "planted"],
    "roar": ["--data", "planted", "--out", "x"],
    "fresh": ["--data", "planted", "--out", "x"],
    "validate": ["--fresh", "100", "--out", "x"],
}


def seeds(name: str, *words: str) -> Any:
    found = verb(name).parse([*SEVERAL[name], *words])["options"].seeds
    return tuple(range(found)) if isinstance(found, int) else tuple(found)


def test_every_verb_with_several_seeds_is_here():
    for name in VERBS:
        spelled = {option.spelling for option in verb(name).typed}
        assert ("--seeds" in spelled) == (name in SEVERAL), name
        assert "--seed" in spelled or "--seeds" not in spelled


@pytest.mark.parametrize("name", SEVERAL)
def test_seeds_are_named_and_counted_alike(name: str):
    assert seeds(name, "--seed", "3") == (3,)
    assert seeds(name, "--seed", "0,1,7") == (0, 1, 7)
    assert seeds(name, "--seed", "0,1", "--seed", "4-6") == (0, 1, 4, 5, 6)
    assert seeds(name, "--seeds", "3") == (0, 1, 2)
    assert seeds(name, "--seeds", "2-4") == (2, 3, 4)
    assert seeds(name, "--seeds", "5,9") == (5, 9)
    assert seeds(name, "--seeds", "5+9") == (5, 9)
    assert seeds(name, "--seed", "4294967295") == (4294967295,)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--seed", "a"], "seed is 'a', which is not a seed or a range of at most 1,000 seeds; write 3, 0,1,2 or 0-4"),
        (["--seed", "4-1"], "'4-1', which is not a seed"),
        (["--seed", ","], "names no seed"),
        (["--seeds", "0"], "--seeds is '0'; it must be a number of seeds, 1 to 1,000"),
        (["--seeds", "9" * 50], "it must be a number of seeds"),
        (["--seed", "1", "--seeds", "2"], "both say which seeds; leave one of them out"),
    ],
)
def test_mistakes(name: str, words: list[str], sentence: str):
    with pytest.raises(InputError, match=sentence):
        seeds(name, *words)


def test_no_seed_at_all_is_for_worlds_alone():
    assert seeds("validate", "--seeds", "none") == ()
    with pytest.raises(InputError, match="'none', which is not a seed"):
        seeds("train", "--seed", "none")
