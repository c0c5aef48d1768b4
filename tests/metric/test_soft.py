"""Soft erasure: how the model is run on it, and the two metrics built on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from driven import answers, arbitrary, drive, scored, seen
from hypothesis import given
from hypothesis import strategies as st

from goldens import GOLDEN
from tiny import FAMILIES, TEXTS, TRANSFORMERS, tiny
from veridical.core.errors import InputError
from veridical.core.records import Example, Explained, Soft, Variant
from veridical.core.seed import generator
from veridical.explanations.explain import explained
from veridical.metric.soft_faithfulness import scaled, soft_comprehensiveness, soft_sufficiency
from veridical.model.ask import answer, ask, predict
from veridical.model.classifier import Classifier
from veridical.model.decompose.rebuild import entering
from veridical.model.erase import erase, erase_all, intact, soften
from veridical.model.soft import _Keys, first_layer, perturb

BOTH = [("sufficiency", soft_sufficiency), ("comprehensiveness", soft_comprehensiveness)]
MODES = ("bernoulli", "gaussian", "gaussian_sd", "attention")
MADE: dict[str, tuple[Classifier, list[Explained]]] = {}


def texts(family: str) -> tuple[Classifier, list[Explained]]:
    """A classifier and its texts with made-up scores."""
    if family not in MADE:
        clf = Classifier(*tiny(family), name=f"tiny-{family}")
        encoded = clf.encode([Example(str(i), text) for i, text in enumerate(TEXTS)])
        full = predict(clf, encoded)
        MADE[family] = (
            clf,
            [
                replace(
                    explained(clf, e, int(logits.argmax()), logits, p),
                    scores=np.where(e.free, generator("scores", e.ids).normal(size=len(e.ids)), 0).astype(np.float32),
                )
                for e, logits, p in zip(encoded, full.logits, full.probabilities, strict=True)
            ],
        )
    return MADE[family]


def some(ex: Explained, *, low: float, high: float) -> np.ndarray:
    """A share between low and high for every free token, 1 elsewhere."""
    return np.where(ex.encoded.free, generator("keep", ex.encoded.ids).uniform(low, high, len(ex.encoded.ids)), 1.0)


# -- the golden figures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "metric"), BOTH)
def test_all_masks_of_three_tokens_in_their_proportions(name, metric):
    """100 draws that hold every mask as often as its probability says give the expectation itself."""
    golden = GOLDEN["soft_ns_nc_exact_enumeration"]
    short = {"sufficiency": "soft_ns", "comprehensiveness": "soft_nc"}[name]
    expected = golden["expected"][short]
    ex = seen(golden["inputs"]["attribution_in_unit_interval"], p=golden["inputs"]["p_full"])
    asker = metric(ex, scale="none", samples=100)
    asked = next(asker)
    null, erased = asked[:100], asked[100:]
    assert {v.soft.keep for v in null} == {(0.0, 0.0, 0.0)}
    a = np.array(golden["inputs"]["attribution_in_unit_interval"])
    np.testing.assert_allclose(erased[0].soft.keep, a if name == "sufficiency" else 1 - a, atol=1e-6)
    assert len({v.soft.seed for v in erased}) == 100
    outcomes = [o["p"] for o in expected["outcomes"] for _ in range(round(100 * o["prob"]))]
    with pytest.raises(StopIteration) as end:
        asker.send(answers([golden["inputs"]["p_null"]] * 100 + outcomes))
    key = f"{short}_from_mean_{'S' if name == 'sufficiency' else 'C'}"
    assert end.value.value.value == pytest.approx(expected[key], abs=1e-9)
    falls = np.maximum(0, golden["inputs"]["p_full"] - np.array(outcomes))
    assert end.value.value.error == pytest.approx(falls.std(ddof=1) / 10 / golden["expected"]["denominator"])


@pytest.mark.parametrize(("name", "metric"), BOTH)
@pytest.mark.parametrize("inverted", [False, True])
def test_real_draws_come_to_the_same_figure(name, metric, inverted):
    """The same classifier run in earnest; turning the scores round is the mistake the golden entry warns of."""
    golden = GOLDEN["soft_ns_nc_exact_enumeration"]
    short = {"sufficiency": "soft_ns", "comprehensiveness": "soft_nc"}[name]
    expected = golden["expected"][short]
    a = np.array(golden["inputs"]["attribution_in_unit_interval"])
    ex = seen(1 - a if inverted else a, p=golden["inputs"]["p_full"], ids=[1, 2, 3])
    clf = Classifier(Sum([[0.0], *golden["inputs"]["token_embeddings"]]))
    ((found, _),) = ask(clf, [metric(ex, scale="none", samples=3000)])
    key = f"{short}_from_mean_{'S' if name == 'sufficiency' else 'C'}"
    figure = expected["if_direction_inverted_by_mistake" if inverted else key]
    assert abs(found.value - figure) < 4 * found.error
    assert found.error < 0.01


@pytest.mark.parametrize(("name", "metric"), BOTH)
def test_a_score_says_what_it_was_divided_by(name, metric):
    """D, the fall to the null input: where it is small the same scatter of draws makes a far larger error."""

    def found(null: float):
        asker = metric(seen([0.2, 0.8], p=0.9), samples=4)
        next(asker)
        with pytest.raises(StopIteration) as end:
            asker.send(answers([null] * 4 + [0.86, 0.88, 0.87, 0.89]))
        return end.value.value

    wide, small, none = found(0.3), found(0.85), found(0.9)
    assert (wide.room, small.room) == (pytest.approx(0.6), pytest.approx(0.05))
    assert small.error == pytest.approx(12 * wide.error)
    assert none.value is None
    assert none.room < 1e-5


class Sum(torch.nn.Module):
    """p(class 0) = 0.5 + the sum of the word vectors' elements."""

    def __init__(self, table):
        super().__init__()
        names = {"num_labels": 2, "id2label": {0: "a", 1: "b"}, "pad_token_id": 0, "model_type": "sum"}
        self.config = type("Config", (), {**names, "problem_type": None, "name_or_path": "sum"})()
        self.words = torch.nn.Embedding.from_pretrained(torch.tensor(table))
        self.none = torch.nn.Parameter(torch.zeros(1))

    def get_input_embeddings(self):
        return self.words

    def forward(self, input_ids, attention_mask, output_attentions=False, output_hidden_states=False):
        p = 0.5 + (self.words(input_ids) * attention_mask[..., None]).sum((1, 2))
        return type("Out", (), {"logits": torch.stack([p.log(), (1 - p).log()], -1)})()


def test_scales():
    golden = GOLDEN["attribution_scaling"]
    for scale in ("minmax", "abs_minmax", "abs_max", "sigmoid", "softmax"):
        np.testing.assert_allclose(
            scaled(np.array(golden["inputs"]["scores"]), scale), golden["expected"][scale], atol=1e-9
        )
    constant = golden["expected"]["constant_scores_minmax"]
    assert scaled(np.array(constant["scores"]), "minmax").tolist() == constant["expected"]
    assert scaled(np.zeros(3), "abs_max").tolist() == [0.5] * 3
    assert scaled(np.array([0.2, -7.0, 900.0, 0.3, 0.2]), "rank").tolist() == [0.5, 0.0, 1.0, 0.75, 0.25]
    assert scaled(np.array([-3.0]), "rank").tolist() == [0.5]
    assert scaled(np.empty(0), "rank").tolist() == []
    assert scaled(np.array([0.0, 0.3, 1.0]), "none").tolist() == [0.0, 0.3, 1.0]
    with pytest.raises(InputError, match=r"A score is -0\.5.*scale=minmax"):
        scaled(np.array([0.2, -0.5]), "none")


def test_special_tokens_take_no_part_in_the_scaling():
    ex = seen([0.0, 0.2, 0.6, 0.4, 0.0], free=[False, True, True, True, False])
    _, asked = drive(soft_sufficiency(ex, samples=1), arbitrary)
    np.testing.assert_allclose(asked[1].soft.keep, [1, 0, 1, 0.5, 1], atol=1e-6)


# -- the released preset ------------------------------------------------------------------------------------


def test_the_released_preset_turns_the_direction_round():
    ex = seen([0.0, 0.2, 0.6, 0.4, 0.0], free=[False, True, True, True, False], ids=[2, 7, 8, 9, 3])
    _, (null, one) = drive(soft_sufficiency(ex, preset="released"), arbitrary)
    assert null.ids == (0,) * 5
    assert null.attend is None
    assert (one.soft.mode, one.soft.where) == ("bernoulli", "block")
    sigmoid = 1 / (1 + np.exp(-np.array([0.2, 0.6, 0.4, 0.0])))
    np.testing.assert_allclose(one.soft.keep, [1, *(1 - sigmoid)], atol=1e-6)  # [CLS] kept whole

    _, (null, one) = drive(soft_comprehensiveness(ex, preset="released"), arbitrary)
    golden = GOLDEN["attribution_scaling"]["expected"]["minmax_with_specials_as_minus_one"]
    np.testing.assert_allclose(one.soft.keep[:4], golden["expected"][:4], atol=1e-6)  # [CLS] erased whole
    np.testing.assert_allclose(one.soft.keep[4], 1 / 1.6, atol=1e-6)  # the separator counts as a token


def test_of_a_pair_the_released_preset_counts_the_text_alone():
    free = [False, True, True, False, False, False]
    ex = seen([0, 0.2, 0.6, 0, 0, 0], free=free, ids=[2, 7, 8, 3, 9, 3], context="why?")
    _, (null, one) = drive(soft_comprehensiveness(ex, preset="released"), arbitrary)
    assert null.ids == (0, 0, 0, 3, 9, 3)
    np.testing.assert_allclose(one.soft.keep, [0, 0.75, 1, 0, 0, 0], atol=1e-6)


@pytest.mark.parametrize("family", TRANSFORMERS)
def test_the_released_preset_runs(family):
    clf, several = texts(family)
    for _, metric in BOTH:
        for score, _ in ask(clf, [metric(ex, preset="released") for ex in several]):
            assert score.value is None or 0 <= score.value <= 1
            assert score.error is None


# -- what is asked ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_all_explanations_of_a_text_meet_the_same_draws(mode):
    a, b = seen([0.1, 0.9, 0.3]), seen([0.8, 0.2, 0.3])
    seeds = {
        tuple(v.soft.seed for v in drive(metric(ex, mode=mode), arbitrary)[1][10:])
        for ex in (a, b)
        for _, metric in BOTH
    }
    assert len(seeds) == 1
    (own,) = seeds
    assert len(set(own)) == (1 if mode == "attention" else 10)
    if mode != "attention":
        others = [drive(soft_sufficiency(a, mode=mode, seed=1), arbitrary)[1]]
        others.append(drive(soft_sufficiency(replace(a, seed=1), mode=mode), arbitrary)[1])
        another = replace(a, encoded=replace(a.encoded, example=Example("y", "x")))
        others.append(drive(soft_sufficiency(another, mode=mode), arbitrary)[1])
        drawn = [{v.soft.seed for v in asked[10:]} for asked in others]
        assert not set(own) & set().union(*drawn)
        assert len(set().union(*drawn)) == 30


@pytest.mark.parametrize(("mode", "nulls"), [("bernoulli", 1), ("attention", 1), ("gaussian", 10), ("gaussian_sd", 10)])
def test_a_null_input_is_asked_as_often_as_it_differs(mode, nulls):
    _, asked = drive(soft_sufficiency(seen([0.1, 0.9, 0.3]), mode=mode), arbitrary)
    assert len(set(asked[:10])) == nulls
    if nulls == 10:  # with the draws of the questions they are compared with
        assert [v.soft.seed for v in asked[:10]] == [v.soft.seed for v in asked[10:]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "metric"), BOTH)
def test_nothing_important_and_everything_important_are_the_ends_of_the_scale(name, metric, mode):
    zeros, ones = seen([0.0, 0.0, 0.0], p=1.0), seen([1.0, 1.0, 1.0], p=1.0)
    reply = lambda v: 1.0 if v == intact(zeros) else 0.9 * arbitrary(v)  # noqa: E731
    assert scored(metric(zeros, scale="none", mode=mode), reply).value == 0
    assert scored(metric(ones, scale="none", mode=mode), reply).value == 1


def test_the_mean_is_taken_before_the_clip():
    ex = seen([0.2, 0.8], p=0.9)
    asker = soft_comprehensiveness(ex, samples=2)
    next(asker)
    with pytest.raises(StopIteration) as end:
        asker.send(answers([0.5, 0.5, 0.1, 0.9]))  # twice the room, and nothing at all
    assert end.value.value.value == 1.0  # clipped first, it would be one half


def test_the_error_is_that_of_leaving_each_draw_out():
    ex = seen([0.2, 0.8], p=0.9)
    asker = soft_comprehensiveness(ex, mode="gaussian", samples=3)
    next(asker)
    nulls, erased = np.array([0.5, 0.4, 0.6]), np.array([0.95, 0.3, 0.7])
    with pytest.raises(StopIteration) as end:
        asker.send(answers([*nulls, *erased]))
    rooms, falls = 0.9 - nulls, np.maximum(0, 0.9 - erased)
    assert end.value.value.value == pytest.approx(falls.mean() / rooms.mean())
    without = np.array([np.delete(falls, i).mean() / np.delete(rooms, i).mean() for i in range(3)])
    assert end.value.value.error == pytest.approx((2 / 3 * ((without - without.mean()) ** 2).sum()) ** 0.5)


def test_a_value_the_clip_holds_has_no_error():
    ex = seen([0.2, 0.8], p=0.9)
    asker = soft_comprehensiveness(ex, samples=3)
    next(asker)
    with pytest.raises(StopIteration) as end:
        asker.send(answers([0.89, 0.89, 0.89, 0.1, 0.4, 0.7]))  # far beyond the room of 0.01 in every draw
    assert (end.value.value.value, end.value.value.error) == (1.0, 0.0)


@pytest.mark.parametrize(("name", "metric"), BOTH)
def test_the_error_is_the_spread_over_seeds(name, metric):
    clf = Classifier(Sum([[0.0], [0.2], [0.1], [-0.1]]))
    ex = seen([0.7, 0.5, 0.2], p=0.7, ids=[1, 2, 3])
    found = [score for score, _ in ask(clf, [metric(ex, scale="none", samples=30, seed=s) for s in range(150)])]
    spread = np.std([score.value for score in found], ddof=1)
    assert np.mean([score.error for score in found]) == pytest.approx(spread, rel=0.2)


def test_one_draw_has_no_error_and_a_hollow_prediction_no_value():
    ex = seen([0.2, 0.8], p=0.9)
    assert scored(soft_sufficiency(ex, samples=1), lambda v: 0.5).error is None
    found = scored(soft_sufficiency(ex), lambda v: 0.9)
    assert found.value is None
    assert found.error is None
    assert scored(soft_sufficiency(seen([0.0], free=[False])), lambda v: 0.9).value is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "attention", "where": "post_layernorm"}, "changes no embeddings"),
        ({"preset": "released", "samples": 5}, "sets samples itself"),
        ({"preset": "released", "mode": "gaussian"}, "sets mode itself"),
        ({"preset": "released", "scale": "sigmoid"}, "sets scale itself"),
    ],
)
def test_settings_that_cannot_be_meant(options, message):
    with pytest.raises(InputError, match=message):
        next(soft_sufficiency(seen([0.1, 0.2]), **options))


# -- draws --------------------------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 2**63 - 1), st.sampled_from(MODES[:3]), st.integers(0, 5))
def test_draws_depend_on_the_seed_and_never_on_the_batch(n, seed, mode, padding):
    keep = tuple(generator("q", n).uniform(0, 1, n).tolist())
    x = torch.from_numpy(generator("x", n).normal(size=(1, n, 6)).astype(np.float32))
    soft = Soft(keep, seed, mode)
    alone = perturb(x, [soft])
    wide = torch.cat([x, torch.full((1, padding, 6), 7.0)], 1)
    other = Soft((0.5,) * (n + padding), seed + 1, mode)
    together = perturb(torch.cat([wide, wide]), [other, soft])
    assert torch.equal(together[1, :n], alone[0])
    assert (together[1, n:] == 7).all()  # padding is left alone


@given(st.integers(0, 1000))
def test_a_larger_share_keeps_all_that_a_smaller_one_kept(seed):
    x = torch.ones(2, 3, 50)
    few, many = perturb(x, [Soft((0.3, 0.0, 1.0), seed), Soft((0.6, 0.2, 1.0), seed)])
    assert (many >= few).all()
    assert (few[1] == 0).all()
    assert (few[2] == 1).all()


def test_draws_have_the_moments_they_should():
    x, w = torch.full((1, 4, 40_000), 2.0), np.array([1.0, 0.5, 0.1, 0.0])
    keep = tuple((1 - w).tolist())
    kept = perturb(x, [Soft(keep, 1)])[0]
    np.testing.assert_allclose((kept != 0).float().mean(-1), 1 - w, atol=0.01)
    assert set(kept.unique().tolist()) == {0.0, 2.0}

    noise = perturb(x, [Soft(keep, 1, "gaussian_sd", variance=0.25)])[0] / 2 - 1
    np.testing.assert_allclose(noise.std(-1), 0.5 * w, atol=0.01)
    np.testing.assert_allclose(noise.mean(-1), np.zeros(4), atol=0.01)

    rows = [Soft((0.5,), seed, "gaussian", variance=0.25) for seed in range(4000)]
    drawn = perturb(torch.ones(4000, 1, 3), rows)[:, 0] - 1
    assert torch.equal(drawn, drawn[:, :1].expand(-1, 3))  # one draw for the whole vector
    assert float(drawn[:, 0].std()) == pytest.approx(0.25, abs=0.01)


# -- the model ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_zero_attention_is_an_attention_mask_and_full_attention_no_change(family):
    clf, several = texts(family)
    for ex in several:
        whole = np.ones(len(ex.encoded.ids))
        gone = np.flatnonzero(np.array(ex.encoded.free) & (generator("half", ex.encoded.ids).random(len(whole)) < 0.5))
        zero = whole.copy()
        zero[gone] = 0.0
        nothing = np.where(ex.encoded.free, 0.0, 1.0)
        found = answer(clf, [soften(ex, q, mode="attention") for q in (zero, nothing, whole)]).logits
        hard = answer(clf, [erase(ex, gone, "attention"), erase_all(ex, "attention"), intact(ex)]).logits
        np.testing.assert_allclose(found, hard, atol=1e-5)
        almost = whole.copy()
        almost[ex.encoded.free] = 1 - 1e-7
        near = answer(clf, [soften(ex, almost, mode="attention")]).logits
        np.testing.assert_allclose(near, hard[2:], atol=1e-5)


@pytest.mark.parametrize("family", TRANSFORMERS)
def test_attention_fades_without_a_jump(family):
    """A key of next to no weight is a key that is masked; the BiLSTM still reads a token it no longer attends to."""
    clf, several = texts(family)
    ex = several[2]
    position = int(np.flatnonzero(ex.encoded.free)[3])
    shares = []
    for q in (1e-30, 1e-3, 0.5):
        keep = np.ones(len(ex.encoded.ids))
        keep[position] = q
        shares.append(soften(ex, keep, mode="attention"))
    tiny_, small, half = answer(clf, shares).logits
    masked, whole = answer(clf, [erase(ex, [position], "attention"), intact(ex)]).logits
    np.testing.assert_allclose(tiny_, masked, atol=1e-5)
    assert np.abs(small - masked).max() < 0.1 * np.abs(whole - masked).max()
    assert np.abs(half - masked).max() > 1e-4
    assert np.abs(half - whole).max() > 1e-4


@pytest.mark.parametrize("family", ["bert", "deberta_v2", "modernbert"])
def test_attention_weights_are_scaled_and_normalised_again(family):
    """softmax(s + log q) is q softmax(s) over its sum, in the first layer, whose scores are still the model's own."""
    clf, several = texts(family)
    ex = several[2]
    keep = some(ex, low=0.1, high=0.9)
    with clf.eager(), torch.no_grad():
        before = clf.forward(clf.collate_variants([intact(ex)]), attentions=True).attentions[0]
        with _Keys(torch.from_numpy(np.log(keep)).float()[None]):
            after = clf.forward(clf.collate_variants([intact(ex)]), attentions=True).attentions[0]
    expected = before * torch.from_numpy(keep).float()
    torch.testing.assert_close(after, expected / expected.sum(-1, keepdim=True), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("family", [*TRANSFORMERS, "gpt2", "opt", "albert"])
def test_the_block_is_where_the_first_layer_reads(family):
    clf, several = texts(family)
    ex = several[2]
    block: list[torch.Tensor] = []
    with torch.no_grad(), entering(first_layer(clf), block.append):
        first = clf.forward(clf.collate_variants([intact(ex)]), hidden=True).hidden[0]
    assert torch.equal(block[0], first)
    variant = soften(ex, some(ex, low=0.2, high=0.8), seed=5, where="block")
    found = answer(clf, [variant]).logits
    with torch.no_grad(), entering(first_layer(clf), lambda x: perturb(x, [variant.soft])):
        expected = clf.forward(clf.collate_variants([intact(ex)])).logits
    np.testing.assert_allclose(found, expected, atol=1e-5)
    at_word = answer(clf, [soften(ex, np.array(variant.soft.keep), seed=5)]).logits
    assert np.abs(found - at_word).max() > 1e-4


def questions(family: str) -> list[Variant]:
    """Hard and soft ones of every style, in a mixed order."""
    _, several = texts(family)
    found: list[Variant] = []
    for ex in several:
        found += [intact(ex), erase_all(ex), erase(ex, np.flatnonzero(ex.encoded.free)[:1], "attention")]
        found += [soften(ex, some(ex, low=0.1, high=0.9), seed=7, mode=mode) for mode in MODES]
        if family != "bilstm":
            found.append(soften(ex, some(ex, low=0.1, high=0.9), seed=7, where="block"))
            found.append(soften(ex, some(ex, low=0.1, high=0.9), seed=7, mode="gaussian", where="block"))
    order = generator("order", family).permutation(len(found))
    return [found[i] for i in order]


@pytest.mark.parametrize("family", FAMILIES)
def test_soft_and_hard_questions_share_an_answer_and_not_their_batches(family):
    clf, _ = texts(family)
    asked = questions(family)
    together = answer(clf, asked).logits
    alone = np.concatenate([answer(clf, [variant]).logits for variant in asked])
    np.testing.assert_allclose(together, alone, atol=2e-5)
    np.testing.assert_allclose(answer(clf, asked[::-1], budget=64).logits[::-1], together, atol=2e-5)
    assert (answer(clf, asked).logits == together).all()
    hard = [variant for variant in asked if variant.soft is None]
    rows = [i for i, variant in enumerate(asked) if variant.soft is None]
    assert (answer(clf, hard).logits == together[rows]).all()  # to the last bit: soft ones never enter their batches
    assert len(np.unique(together.round(4), axis=0)) > 0.7 * len(asked)  # erased wholly, texts are alike


def test_equal_soft_questions_are_asked_once():
    clf, several = texts("bert")
    ex = several[2]
    keep = some(ex, low=0.1, high=0.9)
    before = clf.forwards
    answer(clf, [soften(ex, keep, seed=s) for s in (1, 2, 1, 2, 2)] + [soften(ex, keep, seed=1)])
    assert clf.forwards - before == 2


@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_is_left_as_it_was(family):
    clf, _ = texts(family)
    implementation = getattr(clf.model.config, "_attn_implementation", None)
    answer(clf, questions(family))  # transformers puts its own recording hooks up once
    clf.model.train()
    hooks = [len(m._forward_hooks) for m in clf.model.modules()]
    answer(clf, questions(family))
    assert [len(m._forward_hooks) for m in clf.model.modules()] == hooks
    assert all(m.training for m in clf.model.modules())
    assert getattr(clf.model.config, "_attn_implementation", None) == implementation
    assert not torch.overrides._get_current_function_mode_stack()
    clf.model.eval()


def test_what_a_model_cannot_do_is_refused_with_a_way_out():
    clf = Classifier(Sum([[0.0], [0.1], [0.2], [-0.1]]))
    ex = seen([0.1, 0.2, 0.3], ids=[1, 2, 3])
    keep = np.array([0.5, 0.2, 0.1])
    with pytest.raises(InputError, match=r"1 layers, but 0 of its softmaxes.*mode=bernoulli"):
        answer(clf, [soften(ex, keep, mode="attention")])
    for lost in (clf, texts("bilstm")[0]):
        with pytest.raises(InputError, match="take where=word"):
            answer(lost, [soften(ex, keep, where="block")])


def test_block_sparse_attention_is_refused():
    """BigBird's own attention has no softmax over all keys."""
    model, tokenizer = tiny("big_bird", attention_type="block_sparse", block_size=4, num_random_blocks=1)
    clf = Classifier(model, tokenizer)
    (long,) = clf.encode([Example("x", " ".join(["the film was good and the book is bad"] * 6))])
    full = predict(clf, [long])
    assert model.bert.attention_type == "block_sparse"  # it gives up on short texts, which would be no test
    ex = explained(clf, long, 0, full.logits[0], full.probabilities[0])
    with pytest.raises(InputError, match="take mode=bernoulli"):
        answer(clf, [soften(ex, some(ex, low=0.1, high=0.9), mode="attention")])
