"""Erasing tokens of a decoder's text: what is left is what was meant, or it is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import veridical
from tiny import TEXTS, tiny
from tiny_families import DECODERS
from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.records import Example, Explained, Variant
from veridical.explanations.explain import attributions, explained
from veridical.metric import metrics
from veridical.model.ask import answer, ask, predict
from veridical.model.classifier import Classifier
from veridical.model.erase import blank, erase, erase_all, intact, soften


def seen(family: str, layout: str = "usual", context: str | None = None, **config: Any) -> tuple[Classifier, Explained]:
    clf = Classifier(*tiny(family, layout=layout, **config))
    (encoded,) = clf.encode([Example("0", TEXTS[2], context=context)])
    full = predict(clf, [encoded])
    return clf, explained(clf, encoded, 0, full.logits[0], full.probabilities[0])


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_where_nothing_is_left_the_token_that_texts_begin_with_is_read(family: str) -> None:
    clf, ex = seen(family, "bare")
    assert all(ex.encoded.free)
    asked = [erase_all(ex), intact(ex), erase(ex, [0])]
    assert asked[0].ids == ()
    with torch.no_grad():
        lone = clf.model(torch.tensor([[clf.tokenizer.bos_token_id]])).logits[0]
    for variants in (asked, asked[:1], asked[::-1]):
        found = answer(clf, variants).logits[variants.index(asked[0])]
        np.testing.assert_allclose(found, lone, atol=1e-5)


def test_with_no_such_token_nothing_left_is_refused() -> None:
    clf, ex = seen("llama", "bare")
    clf.model.config.bos_token_id = clf.model.config.eos_token_id = None
    for variants in ([erase_all(ex)], [erase_all(ex), intact(ex)]):
        with pytest.raises(InputError, match="Nothing of a text would be left to read"):
            answer(clf, variants)
    clf.model.config.eos_token_id = [10**6, 2]  # some have several; one has no word vector
    with torch.no_grad():
        lone = clf.model(torch.tensor([[2]])).logits[0]
    np.testing.assert_allclose(answer(clf, [erase_all(ex)]).logits[0], lone, atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "bloom"])
def test_the_last_token_cannot_be_masked_out_of_attention(family: str) -> None:
    clf, ex = seen(family)
    last = len(ex.encoded.ids) - 1
    with pytest.raises(InputError, match=r"cannot take away the last token.*erase by delete"):
        answer(clf, [erase(ex, [last], "attention")])
    answer(clf, [erase(ex, [last - 1], "attention")])
    for name in ("occlusion:by=attention", "kernel_shap:by=attention:samples=9"):
        with pytest.raises(InputError, match="cannot take away the last token"):
            attributions(clf, [ex.encoded], methods.choose(name))
    keep = np.ones(last + 1)
    keep[last] = 0.5
    with pytest.raises(InputError, match="soften by mode=bernoulli"):
        answer(clf, [soften(ex, keep, mode="attention")])
    keep[last], keep[1] = 1, 0.5
    answer(clf, [soften(ex, keep, mode="attention"), soften(ex, keep)])


def test_where_the_read_token_stays_attention_takes_away_what_deleting_does() -> None:
    """In BLOOM, whose positions are counted over attended tokens; the context is read last, and never erased."""
    clf, ex = seen("bloom", context="Where is John?")
    gone = np.flatnonzero(ex.encoded.free)
    found = answer(clf, [erase(ex, gone, "attention"), erase(ex, gone, "delete")]).logits
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


def test_the_pad_token_is_not_written_into_a_text() -> None:
    _, ex = seen("llama")  # whose pad token has the id 0
    assert ex.end_id == 0
    with pytest.raises(InputError, match=r"by=zero_id_attended writes the id 0.*pad token.*take by=delete"):
        erase(ex, [2], "zero_id_attended")
    with pytest.raises(InputError, match=r"The blank null input writes the id 0"):
        blank(ex)
    clf, ex = seen("llama", pad_token_id=2)
    assert erase(ex, [2], "zero_id_attended").ids[2] == 0
    assert np.isfinite(answer(clf, [blank(ex), erase(ex, [2], "zero_id_attended")]).logits).all()
    assert seen("bert")[1].end_id is None


def test_without_a_mask_token_erasing_by_it_is_refused() -> None:
    _, ex = seen("llama")
    with pytest.raises(InputError, match=r"no mask token.*by=delete"):
        erase(ex, [2], "mask")


@pytest.mark.parametrize("family", DECODERS)
def test_a_text_that_ends_in_the_pad_token_is_read_before_it_alone_and_in_a_batch(family: str) -> None:
    clf, ex = seen(family)
    pad = clf.model.config.pad_token_id
    ended, types = (*ex.encoded.ids, pad), (*ex.encoded.types, 0)
    found = answer(clf, [intact(ex), Variant(ended, types), Variant(ended[:3], types[:3])]).logits
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


@pytest.mark.parametrize("layout", ["usual", "bare"])
@pytest.mark.parametrize("metric", [m.name for m in metrics if m.kind == "faithfulness"])
def test_faithfulness_is_measured_on_decoders(metric: str, layout: str) -> None:
    clf, ex = seen("gpt2", layout)
    scored = replace(ex, scores=np.linspace(-1, 1, len(ex.encoded.ids)))
    choice = metrics.choose(metric, **({"by": "delete"} if metric.startswith("fid_") else {}))  # which have masks first
    if choice.entry.asks:
        ((score, _),) = ask(clf, [choice.entry.run(scored, **choice.options)])
    else:
        score = choice.entry.run(scored, **choice.options)
    assert score.value is None or np.isfinite(score.value)


def test_methods_that_ask_run_on_texts_without_special_tokens() -> None:
    clf = Classifier(*tiny("gpt2", layout="bare"))
    for name in ("occlusion", "lime:samples=30", "kernel_shap:samples=30"):
        for explanation in veridical.explain(clf, list(TEXTS[:3]), name):
            assert np.isfinite(explanation.scores).all()
