"""The mask token in texts: which positions are drawn, by what law, and what a model's configuration says of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from goldens import MEASURABLE
from tiny import tiny
from veridical.core.errors import InputError
from veridical.core.records import Encoded, Example
from veridical.core.seed import generator
from veridical.model.classifier import Classifier
from veridical.model.mask import RATIO, Masking, masked, masking, note_ratio, trained_ratio


def encoded(ids: list[int], free: list[int]) -> Encoded:
    places = tuple((0, 0) for _ in ids)
    return Encoded(Example("x", "text"), tuple(ids), (0,) * len(ids), places, (0,) * len(ids), tuple(map(bool, free)))


def test_each_free_token_is_masked_if_its_draw_is_at_most_the_ratio() -> None:
    case = MEASURABLE["masking_draw"]
    given, expect = case["input"], case["expect"]
    text = encoded(given["ids"], given["free"])
    for template, wanted in ((None, expect["ids"]), (frozenset({0, 1, 2}), expect["released_ids_with_context"])):
        how = Masking(given["mask_id"], 1.0, template)
        chosen = how.chosen(text, given["ratio"], np.array(given["uniforms"]))
        assert list(masked(text, chosen, given["mask_id"]).ids) == wanted


@pytest.mark.parametrize("name", ["masking_count_law", "masking_count_law_half"])
def test_how_many_are_masked_follows_the_law(name: str) -> None:
    given, expect = MEASURABLE[name]["input"], MEASURABLE[name]["expect"]
    n = given["tokens"]
    how, text = Masking(50, given["max_ratio"]), encoded(list(range(n)), [1] * n)
    counts = np.array([sum(i == 50 for i in how.draw(text, generator("law", k)).ids) for k in range(20_000)])
    shares = np.bincount(counts, minlength=n + 1) / len(counts)
    assert np.abs(shares - expect["probability_of_k"]).max() < 0.012  # four standard errors of the largest share
    assert counts.mean() / n == pytest.approx(expect["share_masked"], abs=0.01)


def test_a_context_is_masked_only_if_asked_for() -> None:
    clf = Classifier(*tiny("bert"))
    (pair,) = clf.encode([Example("p", "the film was good", 0, context="is this a good film")])
    token = clf.tokenizer.mask_token_id
    for context, count in ((False, sum(pair.free)), (True, len(pair.ids) - 3)):
        how = masking(clf, 1.0, context=context)
        assert len(how.chosen(pair, 1.0, np.zeros(len(pair.ids)))) == count
        assert how.token == token


def test_the_ratio_is_kept_in_the_configuration(tmp_path: Any) -> None:
    from veridical.model.load import load

    model, tokenizer = tiny("bert")
    clf = Classifier(model, tokenizer)
    assert trained_ratio(clf) == 0.0
    note_ratio(model, 0.0)
    assert not hasattr(model.config, RATIO)  # nothing is written of what never was
    note_ratio(model, 0.7)
    clf.save(tmp_path)
    assert trained_ratio(load(str(tmp_path))) == 0.7
    note_ratio(model, 0.0)  # trained on without masks
    assert trained_ratio(clf) == 0.0
    for wrong in (2.0, "much", True):
        setattr(model.config, RATIO, wrong)
        with pytest.raises(InputError, match=RATIO):
            trained_ratio(clf)


def test_a_tokenizer_without_a_mask_is_refused() -> None:
    model, tokenizer = tiny("bert")
    tokenizer = type(tokenizer)(tokenizer_object=tokenizer.backend_tokenizer, pad_token="[PAD]")
    with pytest.raises(InputError, match="no mask token"):
        masking(Classifier(model, tokenizer), 1.0)
