"""DecompX against the authors' figures, against its definition written out with loops on every family, and against
itself: chunks, fused matrices, gradients, padding."""

from __future__ import annotations

import itertools
import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForSequenceClassification, BertConfig

import veridical
from tiny import TEXTS, TRANSFORMERS, Double, tiny
from veridical.attribution import decompx_classifier as by_class
from veridical.core.errors import InputError
from veridical.core.records import Batch, Example
from veridical.model.classifier import Classifier
from veridical.model.decompose import decompose as whole_text
from veridical.model.decompose import layer as decomposed_layer
from veridical.model.decompose.decompose import decompose, head_shares, kept, read, readouts
from veridical.model.decompose.share import How
from veridical.model.decompose.trace import Trace, trace

GOLDEN = Path(__file__).parent.parent / "golden/decompx_alti"
FIGURES = json.loads((GOLDEN / "expected-decompx-bert.json").read_text())
VARIANTS = {
    "absdot": How(),
    "no_bias": How("none"),
    "bias_token": How("token"),
    "bias_token_absdot": How("late"),
    "norm": How("norm"),
    "equal": How("equal"),
    "abssim": How("abssim"),
    "cls": How("cls"),
    "absdot_no_ffn": How(ffn=False),
    "no_bias_no_ffn": How("none", ffn=False),
    "absdot_relu": How(activation="relu"),
    "absdot_gelu_la_tanh_la": How(activation="tangent"),
}
BIAS = ("absdot", "norm", "equal", "abssim", "cls", "none", "token", "late")
LINEAR = ("equal", "cls", "none", "token", "late")
MODERN = {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True}
# A family and what its configuration is given: heads that average, biases where there are none, one logit.
MODELS = [*((family, {}) for family in TRANSFORMERS)]
MODELS += [("modernbert", {**MODERN, "classifier_pooling": pooling}) for pooling in ("cls", "mean")]
MODELS += [("roberta", {"num_labels": 1}), ("bert", {"num_hidden_layers": 1})]
# LayerNorms, parallel parts, norms of what parts give, biases before grouped heads, one layer; two encoders besides.
MODELS += [("gpt2", {}), ("gpt2", {"n_layer": 1}), ("phi", {}), ("gpt_neox", {"num_labels": 1}), ("qwen2", {})]
MODELS += [("gemma2", {"attention_bias": True}), ("opt", {"do_layer_norm_before": False, "word_embed_proj_dim": 16})]
MODELS += [("eurobert", {}), ("albert", {})]
GATED = ("modernbert", "qwen2", "gemma2", "eurobert")
named = pytest.mark.parametrize(("family", "config"), MODELS, ids=[f"{f}-{'-'.join(map(str, c))}" for f, c in MODELS])


def options(how: How) -> dict:
    return {"bias": how.bias, "rules": how.rules, "ffn": how.ffn, "activation": how.activation}


def seen_by(family: str, config: dict, texts=TEXTS[1:4], dtype=torch.float64) -> Trace:
    model, tokenizer = tiny(family, **config)
    clf = Classifier(model.to(dtype), tokenizer)
    with torch.no_grad(), clf.eager(), Double() if dtype == torch.float64 else nullcontext():
        return trace(clf, clf.collate(clf.encode([Example(str(i), text) for i, text in enumerate(texts)])))


def run(seen: Trace, row: int, how: How, **limits) -> tuple[torch.Tensor, torch.Tensor]:
    """The vectors the head reads and every source's part of the logits, from explicit vectors."""
    *_, last = decompose(seen, row, how, **limits)
    found = head_shares(seen, row, how, last)
    return found.pooled, found.logits


def differ(found: torch.Tensor, expected: torch.Tensor) -> float:
    assert found.shape == expected.shape
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1))


# -- the authors' figures -----------------------------------------------------------------------------------


def golden_model(dtype: str):
    model = AutoModelForSequenceClassification.from_pretrained(GOLDEN / "tiny-bert").to(getattr(torch, dtype)).eval()
    given = json.loads((GOLDEN / "inputs.json").read_text())["bert"]
    return model, *(torch.tensor(given[key]) for key in ("input_ids", "attention_mask", "token_type_ids"))


def test_every_variant_of_the_figures_is_tested():
    assert set(VARIANTS) == set(FIGURES["float64"]) == set(FIGURES["float32"])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-5)])
def test_the_figures_of_the_authors_code(variant, dtype, tolerance):
    model, ids, mask, types = golden_model(dtype)
    clf, how = Classifier(model), VARIANTS[variant]
    with torch.no_grad(), clf.eager():
        seen = trace(clf, Batch((), ids, types, mask.bool(), mask.bool()))
    for row, figures in enumerate(FIGURES[dtype][variant]["examples"]):
        count = len(figures["classifier"])
        norms, last = [], torch.empty(0)
        for vectors in decompose(seen, row, how, whole=True):
            norms.append(vectors.norm(dim=-1))
            last = vectors
        head, layers = head_shares(seen, row, how, last), readouts(seen, row, how)
        found = {
            "classifier": head.logits[:count],
            "classifier_bias": head.logits[-1],
            "cls_vector_norms": layers[-1, :count],
            "cls_vector_norm_bias": layers[-1, -1],
            "cls_vector_norms_per_layer": layers[:, :count],
            "pooler_norms": head.acted.norm(dim=-1)[:count],
            "pooler_norm_bias": head.acted[-1].norm(),
            "all_norms_per_layer": torch.stack(norms)[..., :count],
            "cls_vectors_last_layer": last[0, :count],
            "cls_vector_bias_last_layer": last[0, -1],
        }
        for field, expected in figures.items():
            np.testing.assert_allclose(found[field], expected, rtol=0, atol=tolerance, err_msg=field)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-5)])
def test_the_methods_give_the_figures(variant, dtype, tolerance):
    model, ids, mask, types = golden_model(dtype)
    chosen = options(VARIANTS[variant])

    def scores(method: str, **further) -> torch.Tensor:
        # A classifier is explained in its own precision; a bare model of float64 would be explained in float32.
        return veridical.attribute(Classifier(model), ids, mask, method, token_type_ids=types, **chosen, **further)

    classes = [scores("decompx_classifier", target=label) for label in range(3)]
    layers = [scores("decompx", layer=layer) for layer in (1, 2, 3)]
    torch.testing.assert_close(scores("decompx"), layers[-1], rtol=0, atol=0)
    for row, figures in enumerate(FIGURES[dtype][variant]["examples"]):
        count = len(figures["classifier"])
        for label, found in enumerate(classes):
            assert (found[row, count:] == 0).all()
            expected = np.array(figures["classifier"])[:, label]
            np.testing.assert_allclose(found[row, :count], expected, rtol=0, atol=tolerance)
        for found, expected in zip(layers, figures["cls_vector_norms_per_layer"], strict=True):
            np.testing.assert_allclose(found[row, :count], expected, rtol=0, atol=tolerance)


# -- the definition, written out ----------------------------------------------------------------------------


def naive(seen: Trace, row: int, how: How) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Vectors of every target after every layer, and parts of the logits, pair by pair as the paper writes them."""
    count = int(seen.mask[row].sum())
    sources = count + (how.bias in ("token", "late"))

    def hand_out(vectors, bias, target):
        """One target's vectors [S, D] with the bias handed out; a decoder's target sees no tokens to come."""
        if bias is None or how.bias == "none":
            return vectors
        weights = {
            "absdot": lambda v, k: abs(torch.dot(v, bias)),
            "norm": lambda v, k: v.square().sum().sqrt(),
            "abssim": lambda v, k: abs(torch.cosine_similarity(v, bias, dim=0)),
            "equal": lambda v, k: float(k <= target or not seen.causal),
            "cls": lambda v, k: float(k == 0),
        }.get(how.bias, lambda v, k: float(k == count))
        sizes = [weights(v, k) for k, v in enumerate(vectors)]
        if sum(sizes) == 0:  # only where the bias is 0, as the intercepts of a ReLU are
            assert (bias == 0).all()
            return vectors
        return torch.stack([v + size / sum(sizes) * bias for v, size in zip(vectors, sizes, strict=True)])

    def normed(norm, vectors, full, target):
        if norm is None:
            return vectors
        if norm.kind == "rms":
            assert norm.bias is None
            return norm.weight * vectors / (full.square().mean() + norm.eps).sqrt()
        deviation = (full.var(correction=0) + norm.eps).sqrt()
        return hand_out(norm.weight * (vectors - vectors.mean(-1, keepdim=True)) / deviation, norm.bias, target)

    def acted(activation, vectors, u, gate, target):
        if how.activation == "tangent":
            value, slope = torch.func.jvp(activation, (u,), (torch.ones_like(u),))
            return hand_out(vectors * slope, value - slope * u, target)
        return vectors * ((u > 0).double() if how.activation == "relu" and gate else activation(u) / u)

    state = torch.zeros(count, sources, seen.last.shape[-1], dtype=seen.last.dtype)
    for i in range(count):
        state[i, i] = seen.layers[0].x[row, i]
    states = []
    for number, heard in enumerate(seen.layers):
        layer, attention = heard.layer, heard.attention[row, :, :count, :count]
        inward = layer.value.weight.unflatten(0, (layer.heads, -1))  # [H, d, D]
        outward = layer.out.weight.unflatten(1, (layer.heads, -1))  # [D, H, d]
        entering = state
        if layer.pre_norm:
            entering = torch.stack([normed(layer.norm1, state[i], heard.x[row, i], i) for i in range(count)])
        brought = torch.einsum("hij,jkd,hed,ohe->iko", attention, entering, inward, outward)
        bias = 0 if layer.out.bias is None else layer.out.bias
        if layer.value.bias is not None:
            value = layer.value.bias.unflatten(0, (layer.heads, -1))
            if number == 0 and how.rules == "released":
                brought[:, :count] += torch.einsum("hik,he,ohe->iko", attention, value, outward)
            else:
                bias = bias + torch.einsum("he,ohe->o", value, outward)
        bias = None if isinstance(bias, int) else bias
        after = []
        for i in range(count):
            of_attention = normed(layer.post1, brought[i], heard.brought[row, i], i)
            added = None if bias is None else normed(layer.post1, bias[None], heard.brought[row, i], i)[0]
            if how.rules == "paper":
                mine = hand_out(of_attention, added, i) + state[i]
            else:
                mine = hand_out(of_attention + state[i], added, i)
            if not layer.pre_norm:
                mine = normed(layer.norm1, mine, heard.pre1[row, i], i)
            if how.ffn:
                read_by = mine
                if layer.parallel:
                    read_by = normed(layer.norm2, state[i], heard.x[row, i], i)
                elif layer.pre_norm:
                    read_by = normed(layer.norm2, mine, heard.pre1[row, i], i)
                u = heard.u[row, i]
                if layer.gated:
                    held, _ = u.chunk(2)
                    other = None if layer.inner.bias is None else layer.inner.bias.chunk(2)[1]
                    hidden = hand_out(read_by @ layer.inner.weight.chunk(2)[1].T, other, i) * layer.activation(held)
                else:
                    hidden = acted(
                        layer.activation, hand_out(read_by @ layer.inner.weight.T, layer.inner.bias, i), u, True, i
                    )
                fed = hand_out(hidden @ layer.outer.weight.T, layer.outer.bias, i)
                mine = mine + normed(layer.post2, fed, heard.fed[row, i], i)
            if not layer.pre_norm:
                mine = normed(layer.norm2, mine, heard.pre2[row, i], i)
            if number == len(seen.layers) - 1:
                mine = normed(seen.final_norm, mine, heard.pre2[row, i], i)
            after.append(mine)
        state = torch.stack(after)
        states.append(state)
    head, p = seen.head, seen.steps.p[row]

    def through_head(vectors, p, target):
        parts = vectors
        if head.inner is not None:
            parts = hand_out(vectors @ head.inner.weight.T, head.inner.bias, target)
            parts = acted(head.activation, parts, p, False, target)
            parts = normed(head.norm, parts, head.activation(p), target)
        return hand_out(parts @ seen.out.weight.T, seen.out.bias, target)

    last = count - 1
    if head.pool == "late":
        parts = torch.stack([through_head(state[i], p[i], i) for i in range(count)]).mean(0)
    else:
        pooled = state[0] if head.pool == "first" else state[last] if head.pool == "last" else state.mean(0)
        parts = through_head(pooled, p, last)
    if how.bias == "late":
        sizes = [abs(torch.dot(part, parts[-1])) for part in parts[:-1]]
        parts = torch.stack([part + size / sum(sizes) * parts[-1] for part, size in zip(parts, sizes, strict=False)])
    return states, parts


def rules_of(family: str) -> list[How]:
    every = [How(bias, rules) for bias in BIAS for rules in ("released", "paper")]
    every += [How(bias, ffn=False) for bias in ("absdot", "token")]
    if family not in GATED:
        every += [How(bias, activation=a) for bias in ("absdot", "norm", "cls") for a in ("relu", "tangent")]
        every += [How("late", "paper", ffn=False, activation="tangent")]
    return every


@named
def test_the_definition_on_every_family(family, config):
    seen = seen_by(family, config, TEXTS[1:3])
    with torch.no_grad():
        for how in rules_of(family):
            states, parts = naive(seen, 0, how)  # the shorter of the two: padding comes after it
            vectors, found = run(seen, 0, how)
            assert differ(found, parts) < 1e-9, how
            assert differ(vectors, read(seen, 0, states[-1])) < 1e-9, how
            norms = torch.stack([read(seen, 0, state).norm(dim=-1) for state in states])
            assert differ(readouts(seen, 0, how), norms) < 1e-9, how
            for state, vectors in zip(states, decompose(seen, 0, how, whole=True), strict=True):
                assert differ(vectors, state) < 1e-9, how


@named
@pytest.mark.parametrize("bias", LINEAR)
def test_linear_rules_by_gradients_are_those_by_vectors(family, config, bias):
    seen = seen_by(family, config)
    activations = ("ratio",) if family in GATED else ("ratio", "relu", "tangent")
    for rules, ffn, activation in itertools.product(("released", "paper"), (True, False), activations):
        how = How(bias, rules, ffn, activation)
        if not how.linear or (seen.causal and bias == "equal" and activation == "tangent"):
            continue
        with torch.no_grad():
            classes = torch.tensor([0, 1, seen.logits.shape[-1] - 1])
            weights = torch.nn.functional.one_hot(classes, seen.logits.shape[-1]).to(seen.logits.dtype)
            scores = by_class.by_gradients(seen, how, weights)
            for row, label in enumerate(classes.tolist()):
                count = int(seen.mask[row].sum())
                assert differ(scores[row, :count], run(seen, row, how)[1][:count, label]) < 1e-9, how


@named
def test_parts_sum_to_the_whole(family, config):
    """Of the vector the head reads and of every logit, in float32, whichever tokens bear the biases."""
    seen = seen_by(family, config, dtype=torch.float32)
    for row, bias, rules in itertools.product(range(3), BIAS, ("released", "paper")):
        if bias == "none":
            continue
        vectors, parts = run(seen, row, How(bias, rules))
        assert differ(vectors.sum(0), seen.steps.pooled[row]) < 1e-5
        assert differ(parts.sum(0), seen.logits[row]) < 1e-5


def test_scores_sum_to_the_logit():
    model, ids, mask, types = golden_model("float32")
    with torch.no_grad():
        logits = model(ids, attention_mask=mask, token_type_ids=types).logits
    for bias in ("absdot", "norm", "abssim", "equal", "cls", "late"):
        for label in range(3):
            found = veridical.attribute(model, ids, mask, "decompx_classifier", label, types, bias=bias)
            np.testing.assert_allclose(found.sum(-1), logits[:, label], atol=1e-5)


# -- chunks, memory and cost --------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(MODELS), st.sampled_from(BIAS), st.integers(1, 400), st.booleans())
def test_neither_chunks_nor_fusing_change_anything(model, bias, rows, fuse):
    family, config = model
    seen, how = seen_by(family, config, TEXTS[2:3]), How(bias)
    expected = run(seen, 0, how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_text, "ROWS", rows)
        patch.setattr(decomposed_layer, "saves_by_fusing", lambda *sizes: fuse)
        for one, other in zip(run(seen, 0, how), expected, strict=True):
            assert differ(one, other) < 1e-11


def test_a_text_takes_the_memory_it_is_said_to_take_or_is_refused():
    seen = seen_by("bert", {}, TEXTS[4:5])
    with pytest.raises(InputError, match="memory=1e-06 allows; pass memory="):
        run(seen, 0, How(), memory=1e-6)
    layer, tokens = seen.layers[0], int(seen.mask.sum())
    least = next(m / 1e6 for m in range(1, 10**6) if _fits(m / 1e6, layer, tokens))
    assert least * 1e9 > tokens * tokens * 32 * 8  # the buffer
    assert differ(run(seen, 0, How(), memory=least)[1], run(seen, 0, How())[1]) < 1e-11


def _fits(memory, layer, tokens) -> bool:
    try:
        return whole_text.rows_within(memory, layer, tokens, tokens * tokens) > 0
    except InputError:
        return False


@pytest.mark.parametrize(("tokens", "width"), [(512, 768), (1024, 384)])
def test_long_texts_fit_the_default_budget(tokens, width):
    """Without running them: what is planned beside the buffer is more than nothing."""
    seen = seen_by("bert", {}, TEXTS[:1], torch.float32)
    layer = seen.layers[0]
    wide = layer.__class__(**{**vars(layer), "x": torch.empty(1, 1, width), "a": torch.empty(1, 1, 4 * width)})
    rows = whole_text.rows_within(2.0, wide, tokens, tokens * (tokens + 1))
    assert tokens < rows <= max(whole_text.ROWS, tokens + 1)
    with pytest.raises(InputError, match="Decomposing a text of"):
        whole_text.rows_within(0.8, wide, tokens, tokens * tokens)


@pytest.mark.parametrize(("width", "inner"), [(768, 3072), (384, 1536), (32, 48)])
def test_a_matrix_per_target_is_taken_where_it_saves(width, inner):
    for tokens in range(1, 1025):
        apart, fused = tokens * 2 * width * inner, width * width * inner + tokens * width * width
        assert decomposed_layer.saves_by_fusing(tokens, inner, width) == (fused < apart)


@pytest.mark.parametrize("tokens", [16, 48])  # below and above 4/7 of the width
def test_no_more_is_multiplied_than_the_definition_asks_for(tokens):
    depth, width, heads = 4, 64, 4
    config = BertConfig(
        vocab_size=50,
        hidden_size=width,
        num_hidden_layers=depth,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    clf = Classifier(AutoModelForSequenceClassification.from_config(config).eval())
    ids = torch.randint(5, 50, (1, tokens), generator=torch.Generator().manual_seed(0))
    everywhere = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad(), clf.eager():
        seen = trace(clf, Batch((), ids, torch.zeros_like(ids), everywhere, everywhere))
    with FlopCounterMode(display=False) as counter:
        run(seen, 0, How())
    pairs, inner = tokens * tokens, 4 * width
    once = heads * width * pairs
    between = pairs * (2 * width**2 + tokens * width)
    forward = min(tokens * 2 * width * inner, width**2 * (inner + tokens))  # of one target
    needed = once + (depth - 2) * between + once + 2 * tokens * width**2 + ((depth - 1) * tokens + 1) * forward
    assert counter.get_total_flops() / 2 < 1.3 * needed


# -- handling -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["decompx", "decompx_classifier", "decompx_classifier:bias=equal"])
def test_positions_that_are_not_attended_to_do_not_matter_wherever_they_are(method):
    """Padding before and inside a text: whatever stands there bears nothing, and what the head reads is explained."""
    model, ids, mask, types = golden_model("float32")
    row, count = ids[3:], ids.shape[1]
    hole = mask[3:].clone()
    hole[0, 4] = 0
    found = veridical.attribute(model, row, hole, method, 0, types[3:])
    assert found[0, 4] == 0
    other = row.clone()
    other[0, 4] = 77
    np.testing.assert_allclose(veridical.attribute(model, other, hole, method, 0, types[3:]), found, atol=1e-12)
    before = torch.ones(1, count, dtype=torch.long)
    before[0, :2] = 0
    clf = Classifier(model.double())
    with torch.no_grad(), clf.eager():
        seen = trace(clf, Batch((), row, types[3:], before.bool(), before.bool()))
    assert kept(seen, 0).tolist() == [0, *range(2, count)]
    assert differ(run(seen, 0, How())[1].sum(0), seen.logits[0]) < 1e-9


def test_biases_as_a_source_of_their_own_have_no_score():
    model, ids, mask, types = golden_model("float64")
    with torch.no_grad():
        logits = model(ids, attention_mask=mask, token_type_ids=types).logits[:, 0]
    token, none = (
        veridical.attribute(Classifier(model), ids, mask, "decompx_classifier", 0, types, bias=b)
        for b in ("token", "none")
    )
    torch.testing.assert_close(token, none)
    columns = [example["classifier_bias"][0] for example in FIGURES["float64"]["bias_token"]["examples"]]
    np.testing.assert_allclose(logits - token.sum(-1), columns, atol=1e-9)


@pytest.mark.parametrize("activation", ["relu", "tangent"])
@pytest.mark.parametrize("method", ["decompx", "decompx_classifier"])
@pytest.mark.parametrize("bias", ["absdot", "none"])
def test_rules_for_one_activation_are_refused_where_there_is_a_gate(method, activation, bias):
    model, tokenizer = tiny("modernbert")
    ids = tokenizer("A boring plot", return_tensors="pt")["input_ids"]
    with pytest.raises(InputError, match="gated; leave it at ratio"):
        veridical.attribute(model, ids, method=method, activation=activation, bias=bias)


@pytest.mark.parametrize("layer", [0, -1])
def test_layers_are_counted_from_one(layer):
    model, ids, mask, types = golden_model("float32")
    with pytest.raises(InputError, match=f"'layer' of attribution method 'decompx' is {layer}; it must be at least 1"):
        veridical.attribute(model, ids, mask, "decompx", token_type_ids=types, layer=layer)


@pytest.mark.parametrize("layer", [4, 9])
def test_a_layer_the_model_does_not_have(layer):
    model, ids, mask, types = golden_model("float32")
    with pytest.raises(InputError, match=f"layer is {layer}, and this model has layers 1 to 3"):
        veridical.attribute(model, ids, mask, "decompx", token_type_ids=types, layer=layer)
