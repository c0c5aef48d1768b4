"""ALTI and norm-based attention: the authors' own figures, and the definition written out on every family."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForSequenceClassification

import veridical
from tiny import TEXTS, TRANSFORMERS, tiny
from tiny_families import DECODERS
from veridical.attribution import methods
from veridical.attribution.alti import alti_layers, alti_matrix, sizes_and_distances
from veridical.core.errors import Caution, InputError
from veridical.core.records import Batch, Example
from veridical.model.classifier import Classifier
from veridical.model.decompose import contributions
from veridical.model.decompose.contributions import lengths, normalised, parts, roll
from veridical.model.decompose.rebuild import layer_steps
from veridical.model.decompose.trace import trace
from veridical.model.decompose.wiring import wire
from veridical.model.target import Target

GOLDEN = Path(__file__).parent.parent / "golden/decompx_alti"
MODELS = [pytest.param(family, {}, id=family) for family in TRANSFORMERS]
MODELS.append(pytest.param("bert", {"layer_norm_eps": 0.1}, id="bert-eps"))  # large enough to be missed
MODELS.append(pytest.param("modernbert", {"classifier_pooling": "mean"}, id="modernbert-mean"))
# A norm of what attention gives; parallel parts; grouped heads; a bias in post-normed attention; logits averaged.
MODELS += [pytest.param(family, {}, id=family) for family in ("qwen3", "phi", "gpt2", "olmo2", "eurobert", "albert")]
MODELS.append(pytest.param("gemma2", {"attention_bias": True}, id="gemma2"))
RELATIVES = ["alti", "attention_norm", "globenc"]


# -- the authors' figures -----------------------------------------------------------------------------------------


@functools.cache
def golden(name: str):
    return json.loads((GOLDEN / name).read_text())


def golden_trace(dtype: torch.dtype):
    """All four inputs in one padded batch; the authors ran each alone."""
    model = AutoModelForSequenceClassification.from_pretrained(GOLDEN / "tiny-bert", dtype=dtype).eval()
    inputs = golden("inputs.json")["bert"]
    ids, types, mask = (torch.tensor(inputs[key]) for key in ("input_ids", "token_type_ids", "attention_mask"))
    clf = Classifier(model)
    with clf.at_rest(), clf.eager(), torch.no_grad():
        return trace(clf, Batch((), ids, types, mask.bool(), mask.bool())), inputs["lengths"]


def against(found: torch.Tensor, expected: list, atol: float) -> None:
    np.testing.assert_allclose(found.detach().numpy(), np.array(expected), rtol=0, atol=atol)


# With the released quirks as exactly as their precision allows; without them, as far as the quirks reach.
@pytest.mark.parametrize(
    ("dtype", "released", "atol"),
    [("float64", True, 1e-9), ("float64", False, 2e-5), ("float32", True, 1e-5), ("float32", False, 2e-5)],
)
def test_the_authors_figures(dtype, released, atol):
    seen, sizes = golden_trace(getattr(torch, dtype))
    alone, rolled = alti_layers(seen, released=released)
    matrices = [alti_matrix(seen, index, released=released) for index in range(3)]
    measured = [sizes_and_distances(seen, index, released=released) for index in range(3)]
    _, by_l2 = alti_layers(seen, norm="l2", released=released)
    _, after_layer = alti_layers(seen, after="layer", released=released)
    # Sums over 32 components of size 1: their own precision, not that of shares.
    raw = {("float64", True): 1e-9, ("float64", False): 1e-4}.get((dtype, released), 1e-3)
    for row, (n, figures) in enumerate(zip(sizes, golden("expected-alti-bert.json")[dtype], strict=True)):
        against(rolled[row, -1, :n], figures["alti_cls"], atol)
        against(by_l2[row, -1, :n], figures["alti_l2_cls"], atol)
        against(after_layer[row, -1, :n], figures["alti_after_ln2_cls"], atol)
        product = torch.eye(n, dtype=rolled.dtype)
        for index, matrix in enumerate(matrices):
            size, distance = measured[index]
            against(-distance[row, :n, :n], figures["neg_l1_distance"][index], raw)
            against(size[row, :n], figures["resultant_l1_norm"][index], raw)
            against(matrix[row, :n, :n], figures["contributions_normalised"][index], atol)
            against(alone[row, index, :n], figures["contributions_normalised"][index][0], atol)
            against(rolled[row, index, :n], figures["rollout"][index][0], atol)
            product = matrix[row, :n, :n] @ product
            against(product, figures["rollout"][index], atol)
        assert (rolled[row, :, n:] == 0).all()


def test_the_authors_figures_are_met_where_contributions_are_clipped():
    """The figures hold exact zeros, and so do ours."""
    seen, sizes = golden_trace(torch.float64)
    for row, (n, figures) in enumerate(zip(sizes, golden("expected-alti-bert.json")["float64"], strict=True)):
        matrices = [alti_matrix(seen, index, released=True)[row, :n, :n] for index in range(3)]
        assert sum(int((matrix == 0).sum()) for matrix in matrices) == figures["n_clipped"] > 0


@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-9), ("float32", 1e-5)])
def test_the_authors_norms(dtype, atol):
    seen, sizes = golden_trace(getattr(torch, dtype))
    measured = [lengths(parts(seen, index, "norm")) for index in range(3)]
    wholes = [parts(seen, index, "norm").whole for index in range(3)]
    _, rolled = roll(seen.read, (normalised(lengths(parts(seen, index, "norm"))) for index in (2, 1, 0)))
    for row, (n, figures) in enumerate(zip(sizes, golden("expected-alti-bert.json")[dtype], strict=True)):
        for index in range(3):
            against(measured[index][row, :n, :n], figures["transformed_vector_l2_norms"][index], atol)
            against(wholes[index][row, :n], figures["resultants"][index], atol)
        against(rolled[row, -1, :n], figures["norm_rollout_cls"], atol)


@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-9), ("float32", 1e-5)])
def test_the_forward_pass_they_start_from(dtype, atol):
    seen, sizes = golden_trace(getattr(torch, dtype))
    figures = golden("expected-forward-bert.json")[dtype]
    against(seen.logits, figures["logits"], atol)
    for row, (n, example) in enumerate(zip(sizes, figures["examples"], strict=True)):
        for index, layer in enumerate(seen.layers):
            against(layer.attention[row, :, :n, :n], example["attentions"][index], atol)
            against(layer.x[row, :n], example["hidden_states"][index], atol)


def test_the_methods_give_the_figures_through_the_public_door():
    model = AutoModelForSequenceClassification.from_pretrained(GOLDEN / "tiny-bert").eval()
    inputs = golden("inputs.json")["bert"]
    ids, types, mask = (torch.tensor(inputs[key]) for key in ("input_ids", "token_type_ids", "attention_mask"))
    found = {
        "alti_cls": veridical.attribute(model, ids, mask, "alti", token_type_ids=types, released=True),
        "alti_l2_cls": veridical.attribute(model, ids, mask, "alti:norm=l2:released=true", token_type_ids=types),
        "norm_rollout_cls": veridical.attribute(
            model, ids, mask, "attention_norm:scope=norm:rollout=true", token_type_ids=types
        ),
    }
    for row, (n, figures) in enumerate(
        zip(inputs["lengths"], golden("expected-alti-bert.json")["float32"], strict=True)
    ):
        for name, scores in found.items():
            against(scores[row, :n], figures[name], 1e-5)


# -- the definition, written out ----------------------------------------------------------------------------------


# DeBERTa's LayerNorm, RMS norms and the softmax of later families go through float32 whatever the weights are.
SINGLE = ("deberta", "modernbert", "qwen3", "phi", "olmo2", "eurobert", "gemma2")


def made(family: str, config: dict, *, double: bool = True) -> tuple[Classifier, Batch]:
    model, tokenizer = tiny(family, **config)
    clf = Classifier(model.double() if double and family not in SINGLE else model, tokenizer)
    return clf, clf.collate(clf.encode([Example(id=str(i), text=text) for i, text in enumerate(TEXTS)]))


def run(clf: Classifier, batch: Batch, spec: str) -> torch.Tensor:
    choice = methods.choose(spec)
    with clf.at_rest(), clf.eager(), torch.no_grad():
        return choice.entry.run(clf, batch, Target(), **choice.options)


def cut(batch: Batch, row: int) -> Batch:
    """One text of a batch, alone and without padding."""
    n = int(batch.mask[row].sum())
    tensors = (batch.ids, batch.types, batch.mask, batch.free)
    return Batch((batch.encoded[row],), *(tensor[row : row + 1, :n] for tensor in tensors))


def explicit(clf: Classifier, batch: Batch, scope: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """T_ij [N, N, D] and y_i [N, D] of every layer of one text, as large as they are, from the layers' own steps."""
    with clf.eager():
        out = clf.forward(batch, attentions=True, hidden=True)
    found = []
    for layer, x, attention in zip(wire(clf.model).layers, out.hidden, out.attentions, strict=False):
        steps = layer_steps(layer, x, attention)
        weight = layer.out.weight.unflatten(1, (layer.heads, -1))  # [D, H, d]
        part = torch.einsum("hij,hjv,dhv->ijd", attention[0], steps.values[0], weight)
        if layer.post1 is not None:
            part = layer.post1.weight * part / layer.post1.deviation(steps.brought[0])[:, None]
        whole = steps.pre1[0] - x[0]
        if scope != "attention":
            part = part + torch.einsum("ij,id->ijd", torch.eye(len(x[0]), dtype=x.dtype), x[0])
            whole = steps.pre1[0]
        passed = []
        if not layer.pre_norm and scope in ("norm", "layer"):
            passed.append((layer.norm1, steps.pre1))
        if not layer.pre_norm and scope == "layer":
            passed.append((layer.norm2, steps.pre2))
        for norm, before in passed:
            spread = (before[0].var(-1, correction=0) + norm.eps).sqrt()[:, None, None]
            part = norm.weight * (part - part.mean(-1, keepdim=True)) / spread
            whole = norm.module(before)[0]
        if layer.pre_norm and scope == "layer":
            whole = steps.pre2[0]
        found.append((part, whole))
    return found


def shares(part: torch.Tensor, whole: torch.Tensor, p: int) -> torch.Tensor:
    near = (whole.norm(p, -1)[:, None] - (part - whole[:, None]).norm(p, -1)).clamp(min=0)
    near = torch.where(part.abs().sum(-1) > 0, near, 0.0)  # what is not seen is as far as 0 is, to the last digit
    return near / near.sum(-1, keepdim=True).clamp(min=1e-30)


def by_length(part: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
    return part.norm(2, -1) / part.norm(2, -1).sum(-1, keepdim=True)


def product(matrices: list[torch.Tensor]) -> torch.Tensor:
    """Later layers on the left."""
    return functools.reduce(lambda below, above: above @ below, matrices)


def head_reads(clf: Classifier, matrix: torch.Tensor) -> torch.Tensor:
    if clf.family in DECODERS:
        return matrix[-1]
    return matrix.mean(0) if getattr(clf.model.config, "classifier_pooling", "cls") in ("mean", "late") else matrix[0]


DEFINITIONS = {
    "alti": ("norm", lambda layers: product([shares(*layer, 1) for layer in layers])),
    "alti:norm=l2": ("norm", lambda layers: product([shares(*layer, 2) for layer in layers])),
    "alti:after=layer": ("layer", lambda layers: product([shares(*layer, 1) for layer in layers])),
    "alti:layer=1": ("norm", lambda layers: shares(*layers[0], 1)),
    "alti:layer=2": ("norm", lambda layers: shares(*layers[1], 1) @ shares(*layers[0], 1)),
    "alti:layer=2:rollout=false": ("norm", lambda layers: shares(*layers[1], 1)),
    "attention_norm": ("attention", lambda layers: by_length(*layers[-1])),
    "attention_norm:layer=1": ("attention", lambda layers: by_length(*layers[0])),
    "attention_norm:scope=residual": ("residual", lambda layers: by_length(*layers[-1])),
    "attention_norm:scope=norm": ("norm", lambda layers: by_length(*layers[-1])),
    "attention_norm:scope=residual:rollout=true": (
        "residual",
        lambda layers: product([by_length(*layer) for layer in layers]),
    ),
    "globenc": ("layer", lambda layers: product([part.norm(2, -1) for part, _ in layers])),
    "globenc:layer=1": ("layer", lambda layers: layers[0][0].norm(2, -1)),
    "globenc:normalise=true": ("layer", lambda layers: product([by_length(*layer) for layer in layers])),
}


@pytest.mark.parametrize("spec", DEFINITIONS)
@pytest.mark.parametrize(("family", "config"), MODELS)
def test_every_family_agrees_with_the_definition(family, config, spec):
    """The whole padded batch against each text alone, all T_ij spelt out."""
    clf, batch = made(family, config)
    found = run(clf, batch, spec)
    scope, define = DEFINITIONS[spec]
    for row in range(len(batch.ids)):
        alone = cut(batch, row)
        n = alone.ids.shape[1]
        with torch.no_grad():
            expected = head_reads(clf, define(explicit(clf, alone, scope)))
        torch.testing.assert_close(
            found[row, :n], expected / expected.sum(), rtol=0, atol=1e-5 if family in SINGLE else 1e-11
        )
        assert (found[row, n:] == 0).all()


def test_released_leaves_the_eps_out_and_shifts_the_distance():
    """The authors' figures cannot show the first: their tiny model's eps is 1e-12."""
    clf, batch = made("bert", {"layer_norm_eps": 0.1})
    with_eps = run(clf, batch, "alti:layer=1")
    found = run(clf, batch, "alti:layer=1:released=true")
    layer = wire(clf.model).layers[0]
    assert layer.norm1 is not None
    gain, shift = layer.norm1.weight.detach(), layer.norm1.bias
    for row in range(len(batch.ids)):
        one = cut(batch, row)
        n = one.ids.shape[1]
        with torch.no_grad():
            ((part, before), *_) = explicit(clf, one, "residual")
            spread = before.std(-1, correction=0)[:, None]
            part = gain * (part - part.mean(-1, keepdim=True)) / spread[..., None]
            whole = gain * (before - before.mean(-1, keepdim=True)) / spread + shift
            distance = torch.nn.functional.pairwise_distance(part, whole[:, None], p=1)
            near = (whole.norm(1, -1)[:, None] - distance).clamp(min=0)[0]
        torch.testing.assert_close(found[row, :n], near / near.sum(), rtol=0, atol=1e-11)
    assert (found - with_eps).abs().max() > 1e-4


@pytest.mark.parametrize(("family", "config"), MODELS)
@pytest.mark.parametrize("scope", ["attention", "residual", "norm"])
def test_parts_and_biases_make_up_the_whole(family, config, scope):
    """What `whole` is short of the sum of the parts is the same for every text: the biases, scaled."""
    clf, batch = made(family, config)
    close = {"rtol": 0, "atol": 2e-5 if family in SINGLE else 1e-10}
    for (part, whole), layer in zip(explicit(clf, cut(batch, 2), scope), wire(clf.model).layers, strict=True):
        rest = (whole - part.sum(1)).detach()
        if scope != "norm" or layer.pre_norm:
            bias = torch.zeros_like(rest[0]) if layer.out.bias is None else layer.out.bias
            bias = bias.detach().expand_as(rest)
            if layer.post1 is not None:  # scaled with what attention brings, at every position by itself
                size = rest.norm(dim=-1, keepdim=True) / (layer.post1.weight * bias).norm(dim=-1, keepdim=True)
                bias = layer.post1.weight.detach() * bias * (0 if layer.out.bias is None else size.detach())
            torch.testing.assert_close(rest, bias, **close)
            continue
        assert layer.norm1 is not None
        bias = layer.norm1.weight * (layer.out.bias - layer.out.bias.mean())
        scaled = rest - layer.norm1.bias  # b / sd_i: of rank one
        torch.testing.assert_close(
            scaled / scaled.norm(dim=-1, keepdim=True), (bias / bias.norm()).expand_as(scaled), **close
        )


@pytest.mark.parametrize("name", RELATIVES)
@pytest.mark.parametrize(("family", "config"), MODELS)
def test_scores_sum_to_one_and_float32_is_enough(family, config, name):
    clf, batch = made(family, config, double=False)
    found = run(clf, batch, name)
    assert found.dtype == torch.float32
    assert (found >= 0).all()
    torch.testing.assert_close(found.sum(-1), torch.ones(len(found)))
    if family not in SINGLE:
        torch.testing.assert_close(found.double(), run(*made(family, config), name), rtol=0, atol=1e-5)


# -- chunks, padding, training ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RELATIVES)
def test_memory_and_tiles_change_nothing(name, monkeypatch):
    clf, batch = made("bert", {}, double=False)
    spec = f"{name}:rollout=true" if name == "attention_norm" else name
    found = run(clf, batch, spec)
    for memory in (1e-9, 1e-6, 3e-6, 1e-4, 1e9):
        torch.testing.assert_close(run(clf, batch, f"{spec}:memory={memory}"), found, rtol=0, atol=1e-7)
    for cache, block in ((1, 1), (2000, 3), (10**9, 5), (10**9, 10**9)):
        monkeypatch.setattr(contributions, "CACHE", cache)
        monkeypatch.setattr(contributions, "BLOCK", block)
        torch.testing.assert_close(run(clf, batch, spec), found, rtol=0, atol=1e-7)


class Tiles(TorchDispatchMode):
    """Notes the bytes of every tile of parts: what a vector per target is taken from, in place."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.sub_.Tensor:
            self.sizes.append(out.numel() * out.element_size())
        return out


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("memory", [4e-6, 4e-5])
def test_memory_is_a_bound(memory, learning):
    """64 x 64 parts of 32 floats are half a megabyte a layer; training keeps none of them for its way back."""
    model, _ = tiny("bert")
    clf = Classifier(model)
    ids = torch.randint(5, 100, (1, 64), generator=torch.Generator().manual_seed(0))
    every = torch.ones_like(ids).bool()
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with clf.eager(), torch.set_grad_enabled(learning):
        seen = trace(clf, Batch((), ids, torch.zeros_like(ids), every, every))
        with Tiles() as tiles, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            _, rolled = alti_layers(seen, memory=memory)
        if learning:
            rolled[:, -1, 3].sum().backward()
    assert memory * 1e9 / 3 < max(tiles.sizes) <= memory * 1e9
    assert sum(kept.values()) < 64 * 64 * 32 * 4


@pytest.mark.parametrize("name", RELATIVES)
def test_attention_to_masked_positions_inside_a_text_is_left_out(name):
    """A mask may have holes: they are read by nobody, as padding is."""
    model, _ = tiny("distilbert")
    ids = torch.tensor([[2, 30, 31, 32, 33, 34, 3]])
    mask = torch.tensor([[1, 1, 0, 1, 0, 1, 1]])
    other = torch.tensor([[2, 30, 45, 32, 46, 34, 3]])
    found = veridical.attribute(model, ids, mask, name)
    assert found[0, [2, 4]].tolist() == [0, 0]
    assert float(found.sum()) == pytest.approx(1, abs=1e-6)
    torch.testing.assert_close(veridical.attribute(model, other, mask, name), found)


@pytest.mark.parametrize("spec", ["alti", "alti:norm=l2", "attention_norm:scope=norm", "globenc"])
@pytest.mark.parametrize("family", TRANSFORMERS)
def test_its_gradient_is_that_of_the_definition(family, spec):
    """By every parameter of the first layer's attention, through tiles that are worked out again on the way back."""
    clf, batch = made(family, {})
    one = cut(batch, 1)
    scope, define = DEFINITIONS[spec]
    layer = wire(clf.model).layers[0]
    wanted = [clf.model.get_input_embeddings().weight, layer.value.module.weight, layer.out.module.weight]
    with clf.eager():
        choice = methods.choose(f"{spec}:memory=3e-6")
        scores = choice.entry.run(clf, one, Target(), **choice.options)
        expected = head_reads(clf, define(explicit(clf, one, scope)))
    weights = torch.linspace(-1, 1, scores.shape[1], dtype=scores.dtype)
    found = torch.autograd.grad((scores[0] * weights).sum(), wanted)
    by_hand = torch.autograd.grad((expected / expected.sum() * weights).sum(), wanted)
    for ours, theirs in zip(found, by_hand, strict=True):
        assert theirs.abs().max() > 1e-6
        scale = theirs.abs().max()
        torch.testing.assert_close(ours / scale, theirs / scale, rtol=0, atol=3e-5 if family in SINGLE else 1e-10)


# -- edges --------------------------------------------------------------------------------------------------------


def test_a_position_that_nothing_is_near_gives_no_token_a_share():
    """One token, and a LayerNorm whose bias takes away all that comes in: y = 0, every distance is larger than that."""
    model, _ = tiny("bert", num_hidden_layers=1)
    ids = torch.tensor([[7]])
    with torch.no_grad():
        output = model.bert.encoder.layer[0].attention.output
        output.dense.bias.zero_()
        output.LayerNorm.bias.zero_()
        seen = []
        handle = output.LayerNorm.register_forward_hook(lambda module, args, out: seen.append(out))
        model(ids)
        handle.remove()
        output.LayerNorm.bias.copy_(-seen[0][0, 0])
    with pytest.warns(Caution, match="In 1 of 1 texts"):
        assert veridical.attribute(model, ids, method="alti").tolist() == [[0.0]]


def test_layers_are_counted_from_one():
    model, _ = tiny("bert")
    ids = torch.tensor([[2, 30, 31, 3]])
    last = veridical.attribute(model, ids, method="alti")
    assert torch.equal(veridical.attribute(model, ids, method="alti", layer=2), last)
    for name in RELATIVES:
        for layer, sentence in ((0, "it must be at least 1"), (-1, "it must be at least 1"), (3, "allowed: 1 to 2")):
            with pytest.raises(InputError, match=sentence):
                veridical.attribute(model, ids, method=name, layer=layer)


@pytest.mark.parametrize("name", RELATIVES)
@pytest.mark.parametrize("memory", [0.0, -1.0])
def test_no_memory_is_refused(name, memory):
    with pytest.raises(InputError, match=r"'memory' of attribution method .* it must be above 0"):
        veridical.attribute(tiny("bert")[0], torch.tensor([[2, 30, 3]]), method=name, memory=memory)


def test_a_model_without_wiring_is_refused():
    with pytest.raises(InputError, match="no wiring"):
        veridical.attribute(tiny("bilstm")[0], torch.tensor([[5, 6]]), method="alti")
