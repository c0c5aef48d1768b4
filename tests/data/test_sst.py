"""Rationales from trees, step by step on trees small enough to work out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from veridical.core.errors import InputError
from veridical.data import load_data
from veridical.data.sst import parse_tree, row_of

# (tree, extremity of every leaf)
BY_HAND = [
    # The root is more extreme than all it holds: one phrase, the whole sentence.
    ("(4 (2 It) (3 (2 is) (3 good)))", [1, 1, 1]),
    # The root is as extreme as a phrase inside, so it is left; the inner phrase wins over its parts.
    ("(4 (2 It) (4 (2 truly) (3 shines)))", [0, 1, 1]),
    # A leaf as extreme as its phrase: the leaf alone, its neighbour keeps nothing.
    ("(3 (2 a) (3 (3 good) (2 film)))", [0, 1, 0]),
    # Opposite signs: a weakly positive phrase with a weakly negative word is no more extreme than it.
    ("(3 (1 dull) (3 (2 but) (3 short)))", [1, 0, 1]),
    # Strongly negative over weak words of both signs.
    ("(0 (1 dull) (3 (2 but) (3 short)))", [1, 1, 1]),
    # The deepest label counts, not only the children's.
    ("(1 (2 (2 not) (0 awful)) (2 here))", [0, 1, 0]),
]


@pytest.mark.parametrize(("tree", "expected"), BY_HAND)
def test_rationales_by_hand(tree: str, expected: list[int]) -> None:
    assert row_of(parse_tree("", tree)).rationale == expected


def test_words_are_restored_and_a_no_break_space_makes_two_words_of_one_score() -> None:
    row = row_of(parse_tree("", "(3 (2 -LRB-) (3 (3 2\xa01\\/2) (2 -RRB-)))"))
    assert (row.text, row.label, row.rationale) == ("( 2 1/2 )", 1, [0, 1, 1, 0])


def test_a_folder_of_trees(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("(2 (2 neutral) (2 one))\n(0 (1 bad) (2 one))\n\n(3 (2 a) (3 good))\n")
    (tmp_path / "dev.txt").write_text("(1 meh)\n")
    data = load_data(f"sst:path={tmp_path}")
    assert data.labels == ("negative", "positive")
    train = data.splits["train"]
    assert [(ex.id, ex.text, ex.label, ex.rationale) for ex in train] == [
        ("sst-train-1", "bad one", 0, ((0, 7),)),
        ("sst-train-2", "a good", 1, ((2, 6),)),
    ]
    assert list(data.splits) == ["train", "dev"]


@pytest.mark.parametrize("line", ["(5 x)", "(3 (2 x)", "x", "(3 x y)", "(3)", "(3 (2 x)) (2 y)", "(3 (2 x) y)", ")"])
def test_what_is_no_tree(tmp_path: Path, line: str) -> None:
    (tmp_path / "test.txt").write_text(f"(3 fine)\n{line}\n")
    with pytest.raises(InputError, match=r"test.txt, line 2: this is no tree"):
        load_data(f"sst:path={tmp_path}")


def test_no_trees_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no train.txt, dev.txt or test.txt"):
        load_data(f"sst:path={tmp_path}")


def test_short_sentences_can_be_left_out(tmp_path: Path) -> None:
    trees = ["(3 good)", "(3 (2 a) (3 (3 good) (2 film)))", "(1 (2 (2 not) (0 awful)) (2 here))"]
    (tmp_path / "test.txt").write_text("\n".join(trees))
    assert [len(load_data(f"sst:path={tmp_path}:longer={n}").splits["test"]) for n in (0, 1, 2)] == [3, 2, 2]
