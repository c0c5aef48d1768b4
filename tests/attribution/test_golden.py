"""Worked figures: the same numbers on functions small enough to do by hand."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers.modeling_outputs import SequenceClassifierOutput

import veridical
from goldens import GOLDEN
from veridical.attribution.kernel_shap import _shapley, _subsets
from veridical.attribution.rollout import roll
from veridical.core.seed import generator


class Toy(torch.nn.Module):
    """A 'classifier' whose class-0 logit is a given function of the word vectors."""

    def __init__(self, table, function):
        super().__init__()
        self.config = SimpleNamespace(
            problem_type=None,
            num_labels=2,
            id2label={0: "a", 1: "b"},
            pad_token_id=0,
            model_type="toy",
            name_or_path="toy",
        )
        self.words = torch.nn.Embedding.from_pretrained(torch.tensor(table), freeze=False)
        self.function = function

    def get_input_embeddings(self):
        return self.words

    def forward(self, input_ids, attention_mask, output_attentions=False, output_hidden_states=False):
        value = self.function(self.words(input_ids))  # [B]
        return SequenceClassifierOutput(logits=torch.stack([value, torch.zeros_like(value)], -1))


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ("right", "riemann_right"),
        ("left", "riemann_left"),
        ("mid", "riemann_midpoint"),
        ("trapezoid", "trapezoid_51_points"),
        ("gauss", "exact"),
        ("adaptive", "exact"),
        ("released", "gradient_taken_at_unscaled_input_by_mistake"),
    ],
)
def test_integrated_gradients_of_a_product(rule, key):
    golden = GOLDEN["integrated_gradients_bilinear"]
    toy = Toy([[0.0], [2.0], [3.0]], lambda e: e[:, 0, 0] * e[:, 1, 0])
    scores = veridical.attribute(
        toy, torch.tensor([[1, 2]]), method="integrated_gradients", target=0, steps=50, rule=rule
    )
    np.testing.assert_allclose(scores[0], golden["expected"][key], atol=1e-5)


def test_deeplift_splits_a_product_evenly():
    toy = Toy([[0.0], [2.0], [3.0]], lambda e: e[:, 0, 0] * e[:, 1, 0])
    scores = veridical.attribute(toy, torch.tensor([[1, 2]]), method="deeplift", target=0)
    np.testing.assert_allclose(scores[0], [3.0, 3.0], atol=1e-6)


def test_deeplift_refuses_what_it_has_no_rule_for():
    toy = Toy([[0.0], [2.0], [3.0]], lambda e: torch.sin(e).sum((1, 2)))
    with pytest.raises(veridical.InputError, match="no rule for the operation 'sin'"):
        veridical.attribute(toy, torch.tensor([[1, 2]]), method="deeplift", target=0)


def test_gradient_measures():
    golden = GOLDEN["gradient_measures_one_hot"]
    slope = torch.tensor(golden["inputs"]["gradient_wrt_embedding"])
    toy = Toy(golden["inputs"]["embedding_matrix"], lambda e: (e[:, 0] * slope).sum(-1))
    ids = torch.tensor([[golden["inputs"]["token_id"]]])
    found = {
        "gradient_l2_over_vocabulary": veridical.attribute(toy, ids, method="gradient", target=0, over="vocabulary"),
        "gradient_l2_over_embedding": veridical.attribute(toy, ids, method="gradient", target=0),
        "input_times_gradient": veridical.attribute(toy, ids, method="input_x_gradient", target=0),
    }
    for name, scores in found.items():
        assert float(scores[0, 0]) == pytest.approx(golden["expected"][name], abs=1e-6)


def test_rollout_of_two_layers():
    golden = GOLDEN["attention_rollout_two_layers"]
    layers = [torch.tensor([golden["inputs"][name]], dtype=torch.float64) for name in ("layer1", "layer2")]
    np.testing.assert_allclose(roll(layers)[0], golden["expected"]["rollout"], atol=1e-9)
    np.testing.assert_allclose(roll(layers)[0, 0], golden["expected"]["cls_row"], atol=1e-9)


def test_shapley_values_are_those_of_the_definition():
    """All subsets: the weighted regression gives the mean marginal gain over all orders."""
    n = 5
    worth = dict(zip(range(2**n), generator("a game").normal(size=2**n), strict=True))
    value = lambda present: worth[sum(1 << int(i) for i in np.flatnonzero(present))]  # noqa: E731
    inner, weights = _subsets(n, 2**n, generator("unused"))
    found = _shapley(inner, weights, np.array([value(row) for row in inner]) - worth[0], worth[2**n - 1] - worth[0])
    expected = np.zeros(n)
    orders = list(permutations(range(n)))
    for order in orders:
        present = np.zeros(n, bool)
        for player in order:
            before = value(present)
            present[player] = True
            expected[player] += (value(present) - before) / len(orders)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_drawn_subsets_are_unbiased():
    """A sum over players has Shapley values equal to its terms; few draws find them exactly, pairs cancelling."""
    n, terms = 14, generator("terms").normal(size=14)
    inner, weights = _subsets(n, 200, generator("draws"))
    np.testing.assert_allclose(_shapley(inner, weights, inner @ terms, terms.sum()), terms, atol=1e-9)
