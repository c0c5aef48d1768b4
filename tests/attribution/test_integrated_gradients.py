"""Integrated gradients: nodes chosen per text, what the scores miss, and baselines that are a token."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import veridical
from tiny import TEXTS, tiny
from veridical.attribution import methods
from veridical.attribution.integrated_gradients import _baseline
from veridical.core.errors import Caution, InputError
from veridical.core.records import Example
from veridical.explanations.display import cost_line
from veridical.explanations.explain import attributions
from veridical.model.classifier import Classifier

EXAMPLES = [Example(str(i), text) for i, text in enumerate(TEXTS)]


def off(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.abs(found - true).sum() / np.abs(true).sum())


@pytest.mark.filterwarnings("ignore::veridical.core.errors.Caution")
@pytest.mark.parametrize("tolerance", [0.1, 0.01, 0.001])
def test_nested_nodes_stop_at_the_error_that_is_stated(tolerance: float) -> None:
    clf = Classifier(*tiny("bert"))
    encoded = clf.encode(EXAMPLES)
    true = attributions(clf, encoded, methods.choose("integrated_gradients:steps=400"))
    found = attributions(clf, encoded, methods.choose(f"integrated_gradients:rule=nested:tolerance={tolerance}"))
    errors = [off(a.scores, b.scores) for a, b in zip(found, true, strict=True)]
    assert np.median(errors) <= tolerance
    spent = found[0].cost.backward  # the mean over the batch
    assert 14 <= spent <= 62
    if tolerance == 0.1:
        assert spent < 25


@pytest.mark.filterwarnings("ignore::veridical.core.errors.Caution")
def test_a_batch_does_not_sway_how_many_nodes_a_text_gets() -> None:
    clf = Classifier(*tiny("distilbert"))
    choice = methods.choose("integrated_gradients:rule=nested")
    encoded = clf.encode(EXAMPLES)
    together = attributions(clf, encoded, choice)
    alone = [attributions(clf, [e], choice)[0] for e in encoded]
    assert {a.cost.backward for a in alone} <= {a + b for a in (7, 15, 31) for b in (7, 15, 31)}
    assert len({a.cost.backward for a in alone}) > 1  # texts differ
    assert sum(a.cost.backward for a in alone) == pytest.approx(sum(a.cost.backward for a in together))
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, atol=2e-5)


@pytest.mark.filterwarnings("ignore::veridical.core.errors.Caution")
@pytest.mark.parametrize(("steps", "most"), [(1, 14), (14, 14), (15, 30), (30, 30), (50, 62), (62, 62), (5000, 126)])
def test_steps_bound_the_nodes(steps: int, most: int) -> None:
    clf = Classifier(*tiny("modernbert"))  # where no number of nodes is enough
    (found,) = attributions(
        clf, clf.encode(EXAMPLES[4:5]), methods.choose(f"integrated_gradients:rule=nested:tolerance=0:steps={steps}")
    )
    assert most / 2 < found.cost.backward <= most  # the stretch near the text may settle before


def test_l2_of_nested_nodes_is_that_of_many() -> None:
    clf = Classifier(*tiny("bert"))
    encoded = clf.encode(EXAMPLES[1:3])
    true, found = (
        attributions(clf, encoded, methods.choose(f"integrated_gradients:{rule}:aggregate=l2"))
        for rule in ("steps=300", "rule=nested")
    )
    for a, b in zip(found, true, strict=True):
        assert off(a.scores, b.scores) < 0.02
        assert a.gap is None


def test_what_the_sum_misses_is_shown_and_a_large_gap_is_warned_of() -> None:
    clf = Classifier(*tiny("llama"))
    with pytest.warns(Caution, match=r"do not add up in \d of 6 texts.*baseline=token"):
        found = veridical.explain(clf, list(TEXTS), "integrated_gradients:steps=5")
    assert max(explanation.gap for explanation in found) > 0.1
    shown = cost_line(found[0].cost, None, found[0].gap)
    assert shown.endswith(f"the sum misses {found[0].gap:.1%} of the change")
    assert shown in str(found[0])
    (exact,) = veridical.explain(clf, TEXTS[2], "integrated_gradients:rule=adaptive")
    assert exact.gap is None
    (plain,) = veridical.explain(clf, TEXTS[2], "gradient")
    assert "misses" not in str(plain)


def test_a_token_as_baseline_is_no_singular_point() -> None:
    """Word vectors near 0 are blown up by RMS norms; from a token's vector the same nodes go much further."""
    clf = Classifier(*tiny("llama"))
    texts = list(TEXTS[1:6])
    with pytest.warns(Caution):
        from_zero = veridical.explain(clf, texts, "integrated_gradients:steps=20")
    from_token = veridical.explain(clf, texts, "integrated_gradients:steps=20:baseline=token")
    assert np.median([e.gap for e in from_token]) < 0.2 * np.median([e.gap for e in from_zero])


def test_which_token_is_the_baseline() -> None:
    clf = Classifier(*tiny("gemma"))  # which scales what it looks up
    table, tokenizer = clf.model.get_input_embeddings(), clf.tokenizer
    (newline,) = tokenizer("\n", add_special_tokens=False)["input_ids"]
    for text, token in (("", newline), ("a", tokenizer.convert_tokens_to_ids("a"))):
        expected = table(torch.tensor([token]))[0].detach()
        assert torch.equal(_baseline(clf, "token", text), expected)
        assert not torch.allclose(expected, table.weight[token])
    assert torch.equal(_baseline(clf, "pad"), table(torch.tensor([tokenizer.pad_token_id]))[0])
    with pytest.raises(InputError, match=r"token='unbelievable film' is \d+ tokens"):
        _baseline(clf, "token", "unbelievable film")
    with pytest.raises(InputError, match="leave it out beside baseline=zero"):
        _baseline(clf, "zero", "a")
    bare = Classifier(clf.model)
    assert torch.equal(_baseline(bare, "token"), table(torch.tensor([tokenizer.eos_token_id]))[0])
    clf.model.config.eos_token_id = None
    with pytest.raises(InputError, match="name one with token="):
        _baseline(bare, "token")
    bert = Classifier(*tiny("bert"))  # has neither a line break nor an end
    with pytest.raises(InputError, match="name one with token="):
        _baseline(bert, "token")
