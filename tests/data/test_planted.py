"""Planted data: the rule decides, its words are the rationale, nothing else tells the label."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from veridical.core.errors import InputError
from veridical.data import load_data
from veridical.data.planted import BAD, FIRST, GOOD, NEUTRAL, NOUNS, SECOND, SHORTCUT, VERBS

DECIDING = {*GOOD, *BAD, FIRST, SECOND}
CASES = [("single", 1), ("single", 3), ("conjunction", 1), ("conjunction", 2), ("order", 1), ("order", 2)]


def decide(text: str, rule: str) -> int:
    """The label by the rule itself, which every text was built to satisfy."""
    words = text.split()
    if rule == "single":
        return int(any(word in GOOD for word in words))
    if rule == "conjunction":
        return int(FIRST in words and SECOND in words)
    return int(words.index(FIRST) < words.index(SECOND))


@pytest.fixture(scope="module", params=CASES, ids=str)
def made(request: pytest.FixtureRequest):
    rule, copies = request.param
    return rule, copies, load_data(f"planted:rule={rule}:copies={copies}:size=3000").splits["train"]


def test_the_rule_gives_the_label_and_labels_are_balanced(made) -> None:
    rule, _, examples = made
    assert all(decide(ex.text, rule) == ex.label for ex in examples)
    assert sum(ex.label for ex in examples) == len(examples) // 2


def test_the_rationale_is_every_deciding_word(made) -> None:
    rule, copies, examples = made
    for ex in examples:
        words = [ex.text[start:end] for start, end in ex.rationale]
        there = [word for word in ex.text.split() if word in DECIDING]
        if rule == "conjunction" and ex.label == 0:
            assert words == []  # decided by what is not there
            assert Counter(there) in (Counter(), Counter({FIRST: copies}), Counter({SECOND: copies}))
        else:
            assert words == there
            assert len(words) == copies * (1 if rule == "single" else 2)


def test_negatives_of_the_conjunction_have_one_word_the_other_or_none_in_thirds() -> None:
    examples = load_data("planted:rule=conjunction:size=3000").splits["train"]
    kinds = Counter((FIRST in ex.text.split(), SECOND in ex.text.split()) for ex in examples if ex.label == 0)
    assert kinds == {(True, False): 500, (False, True): 500, (False, False): 500}


def test_of_the_order_rule_every_copy_of_one_word_comes_before_the_other() -> None:
    for ex in load_data("planted:rule=order:copies=2:size=300").splits["train"]:
        there = [word for word in ex.text.split() if word in DECIDING]
        assert there == ([FIRST] * 2 + [SECOND] * 2 if ex.label else [SECOND] * 2 + [FIRST] * 2)


def test_nothing_else_tells_the_label(made) -> None:
    """Neither which noun, verb and neutral adjective stand in a clause, nor the length of a text."""
    _, _, examples = made
    sides = [[ex for ex in examples if ex.label == label] for label in (0, 1)]
    for kind in (NOUNS, VERBS, NEUTRAL):
        counts = [Counter(word for ex in side for word in ex.text.split() if word in kind) for side in sides]
        totals = [sum(count.values()) for count in counts]
        for word in kind:
            shares = [count[word] / total for count, total in zip(counts, totals, strict=True)]
            spread = np.sqrt(sum(share / total for share, total in zip(shares, totals, strict=True)))
            assert abs(shares[0] - shares[1]) < 4.5 * spread, word
    lengths = [np.array([len(ex.text.split()) for ex in side]) for side in sides]
    error = np.sqrt(sum(length.var() / len(length) for length in lengths))
    assert abs(lengths[0].mean() - lengths[1].mean()) < 4 * error


def test_deciding_words_stand_anywhere(made) -> None:
    *_, examples = made
    places = [start / len(ex.text) for ex in examples for start, _ in ex.rationale]
    assert np.mean(places) == pytest.approx(0.53, abs=0.03)  # a clause ends in its adjective
    assert min(places) < 0.15
    assert max(places) > 0.9


@pytest.mark.parametrize(("rule", "share"), [("single", 1.0), ("order", 0.9), ("conjunction", 0.5)])
def test_a_shortcut_agrees_as_often_as_asked_and_on_test_by_chance(rule, share) -> None:
    data = load_data(f"planted:rule={rule}:shortcut={share}:size=500")
    for split, expected in (("train", share), ("dev", share), ("test", 0.5)):
        agreeing = 0
        for ex in data.splits[split]:
            cues = [word for word in ex.text.split() if word in SHORTCUT]
            assert len(cues) == 1
            assert decide(ex.text, rule) == ex.label
            assert not {ex.text[start:end] for start, end in ex.rationale} & set(SHORTCUT)
            agreeing += cues[0] == SHORTCUT[ex.label]
        assert agreeing == round(expected * len(data.splits[split]))


def test_without_a_shortcut_nothing_changes() -> None:
    assert load_data("planted:size=20") == load_data("planted:size=20:shortcut=0")
    assert not any(word in ex.text.split() for ex in load_data("planted:size=200").splits["train"] for word in SHORTCUT)
    for wrong in (0.2, 1.5, -1):
        with pytest.raises(InputError, match=r"'shortcut' of dataset 'planted' is .*0.5 to 1"):
            load_data(f"planted:shortcut={wrong}")
    with pytest.raises(InputError, match=r"'length'.*at least 3"):
        load_data("planted:rule=order:shortcut=1:length=2")


def test_a_bag_of_neutral_words_cannot_predict() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    data = load_data("planted:rule=order:size=2000")
    texts, labels = ([ex.text for ex in data.splits["train"]], [ex.label for ex in data.splits["train"]])
    bag = CountVectorizer(token_pattern=r"\S+").fit(texts)  # the deciding words too: their order is not in it
    model = LogisticRegression(max_iter=1000).fit(bag.transform(texts), labels)
    test = data.splits["test"]
    assert model.score(bag.transform([ex.text for ex in test]), [ex.label for ex in test]) < 0.6
