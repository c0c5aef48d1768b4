from __future__ import annotations

import copy
from dataclasses import fields, replace

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    CamembertConfig,
    GPTNeoConfig,
    XLMRobertaConfig,
)

import veridical
from tiny import FURTHER, LENGTH, PAIRS, TEXTS, TRANSFORMERS, tiny
from veridical.core.errors import InputError
from veridical.model.classifier import Classifier
from veridical.model.decompose import rebuild
from veridical.model.decompose.rebuild import check, compare, head_steps, layer_steps
from veridical.model.decompose.wiring import ROWS, Affine, Norm, wire


def batches(tokenizer):
    texts, contexts = (list(column) for column in zip(*PAIRS, strict=True))
    yield tokenizer(list(TEXTS), padding=True, return_tensors="pt")
    yield tokenizer(texts, contexts, padding=True, return_tensors="pt")
    yield {"input_ids": tokenizer(TEXTS[2], return_tensors="pt")["input_ids"]}  # no mask given


def traces(model, inputs):
    """Inputs and outputs of every layer, and the logits, seen from outside by hooks."""
    seen = []
    layers = model.base_model.get_submodule(ROWS[model.config.model_type].layers)

    def keep(module, args, output):
        seen.append((args[0], output[0] if isinstance(output, tuple) else output))

    handles = [layer.register_forward_hook(keep) for layer in layers]
    with torch.no_grad():
        out = model(**inputs, output_attentions=True, output_hidden_states=True)
    for handle in handles:
        handle.remove()
    return seen, out


@pytest.mark.parametrize("family", [*TRANSFORMERS, *FURTHER])
def test_every_family_is_rebuilt_from_its_parts(family):
    model, tokenizer = tiny(family)
    for inputs in batches(tokenizer):
        assert compare(model, wire(model), inputs) < 1e-5


@pytest.mark.parametrize("family", [*TRANSFORMERS, *FURTHER])
def test_the_steps_are_what_the_layers_themselves_take_in_and_give_out(family):
    """Independent of what transformers calls a hidden state: hooks on the layer modules."""
    model, tokenizer = tiny(family)
    model.set_attn_implementation("eager")
    inputs = next(batches(tokenizer))
    seen, out = traces(model, inputs)
    wired = wire(model)
    assert len(seen) == len(wired.layers) == model.config.num_hidden_layers
    with torch.no_grad():
        for layer, (x, output), attention in zip(wired.layers, seen, out.attentions, strict=True):
            torch.testing.assert_close(layer_steps(layer, x, attention).output, output, atol=2e-5, rtol=1e-5)
        last = seen[-1][1] if wired.final_norm is None else wired.final_norm(seen[-1][1])
        steps = head_steps(wired.head, last, inputs["attention_mask"], inputs["input_ids"])
    torch.testing.assert_close(steps.logits, out.logits, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("modernbert", {"classifier_pooling": "mean"}),
        (
            "modernbert",
            {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True},
        ),
        ("electra", {"embedding_size": 32}),
        ("deberta", {"pooler_hidden_act": "tanh", "position_biased_input": True, "type_vocab_size": 2}),
        ("deberta_v2", {"share_att_key": False, "position_buckets": -1}),
        ("big_bird", {"hidden_act": "relu"}),
        ("bert", {"hidden_act": "relu"}),
        ("distilbert", {"activation": "relu"}),
        ("llama", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 1}),
        ("gemma2", {"attention_bias": True}),
        ("gpt_neox", {"use_parallel_residual": False, "attention_bias": False}),
        ("opt", {"do_layer_norm_before": False, "word_embed_proj_dim": 16}),
        ("opt", {"layer_norm_elementwise_affine": False, "enable_bias": False}),
        ("albert", {"num_hidden_groups": 1, "num_hidden_layers": 3}),
        ("eurobert", {"classifier_pooling": "bos"}),
        ("eurobert", {"classifier_pooling": "mean"}),
    ],
)
def test_options_of_the_families_are_followed(family, options):
    model, tokenizer = tiny(family, **options)
    for inputs in batches(tokenizer):
        assert compare(model, wire(model), inputs) < 1e-5


@pytest.mark.parametrize("kind", [XLMRobertaConfig, CamembertConfig])
def test_relatives_of_roberta(kind):
    config = kind(
        vocab_size=40,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=LENGTH + 2,
    )
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    for weight in model.parameters():
        weight.data += 0.2 * torch.randn(weight.shape)
    assert len(check(model).layers) == 2


def changed(model, **names):
    return wire(model, replace(ROWS[model.config.model_type], **names))


@pytest.mark.parametrize(
    ("family", "wrong", "part"),
    [
        ("bert", {"value": "attention.self.key"}, "layer 0"),
        ("bert", {"norm1": "output.LayerNorm"}, "layer 0"),
        ("roberta", {"pre_norm": True}, "layer 0"),
        ("distilbert", {"value": "attention.q_lin"}, "layer 0"),
        ("llama", {"norm": "layer"}, "layer 0"),
        ("llama", {"inner": ("mlp.up_proj", "mlp.gate_proj")}, "layer 0"),
        ("gemma", {"norm": "rms"}, "layer 0"),
        ("gemma2", {"post1": None}, "layer 0"),
        ("phi", {"parallel": False}, "layer 0"),
        ("gpt_neox", {"fused": "qkv"}, "layer 0"),
        ("gpt2", {"final_norm": None}, "layer 1"),
        ("electra", {"head_activation": "tanh"}, "the head"),
        ("deberta", {"fused": "qkv"}, "layer 0"),
        ("deberta", {"value_bias": "attention.self.q_bias"}, "layer 0"),
        ("deberta_v2", {"head_activation": "tanh"}, "the head"),
        ("modernbert", {"fused": "per head"}, "layer 0"),
        ("modernbert", {"final_norm": None}, "layer 2"),
        ("modernbert", {"head_norm": None}, "the head"),
        ("big_bird", {"head_activation": "tanh"}, "the head"),
    ],
)
def test_a_wrong_row_fails_loudly_and_names_the_place(family, wrong, part):
    model, tokenizer = tiny(family)
    with pytest.raises(InputError, match=f"{part}, rebuilt"):
        compare(model, changed(model, **wrong), next(batches(tokenizer)))


def test_only_the_broken_layer_is_blamed():
    model, tokenizer = tiny("bert")
    wired = wire(model)
    layer = wired.layers[1]
    broken = replace(layer, out=replace(layer.out, weight=layer.out.weight * 1.001))
    with pytest.raises(InputError, match=r"'bert'.*layer 1, rebuilt"):
        compare(model, replace(wired, layers=(wired.layers[0], broken)), next(batches(tokenizer)))


def test_a_name_that_does_not_exist_is_an_error_of_its_own():
    model, _ = tiny("bert")
    with pytest.raises(InputError, match=r"layer 0 has no 'attention\.self\.values'"):
        changed(model, value="attention.self.values")
    with pytest.raises(InputError, match="the classifier has no 'head'"):
        changed(model, head_out="head")


def test_every_name_in_the_table_matters():
    """A row is not padded with names nobody reads: renaming any of them is noticed."""
    model, _ = tiny("modernbert")
    row = ROWS["modernbert"]
    others = ("fused", "norm")  # choices, not names
    names = [f.name for f in fields(row) if isinstance(getattr(row, f.name), (str, tuple)) and f.name not in others]
    assert len(names) == 13
    for name in names:
        nowhere = ("nowhere",) if name == "inner" else "nowhere"
        with pytest.raises(InputError, match="has no"):
            changed(model, **{name: nowhere})


def test_unknown_families_are_told_what_still_works():
    sizes = {"hidden_size": 8, "num_layers": 1, "attention_types": [[["global"], 1]], "num_heads": 2}
    config = GPTNeoConfig(vocab_size=20, pad_token_id=0, bos_token_id=1, eos_token_id=2, **sizes)
    model = AutoModelForSequenceClassification.from_config(config)
    with pytest.raises(InputError, match=r"'gpt_neo'.*the others can.*modernbert"):
        check(model)
    bilstm, _ = tiny("bilstm")
    with pytest.raises(InputError, match="'bilstm-attention'"):
        check(bilstm)


def test_block_sparse_attention_and_convolutions_are_refused():
    sparse, _ = tiny("big_bird", attention_type="block_sparse", block_size=4, num_random_blocks=1)
    with pytest.raises(InputError, match=r"block_sparse.*original_full"):
        check(sparse)
    convolved, _ = tiny("deberta_v2", conv_kernel_size=3)
    with pytest.raises(InputError, match=r"convolution.*conv_kernel_size=3"):
        check(convolved)
    grouped, _ = tiny("albert", inner_group_num=2)
    with pytest.raises(InputError, match="ALBERT has 2 layers in a group"):
        check(grouped)


def small(kind: str, **sizes):
    return AutoModelForSequenceClassification.from_config(AutoConfig.for_model(kind, vocab_size=40, **sizes)).eval()


def test_families_whose_answers_padding_sways_are_refused_at_once():
    xlnet = small("xlnet", d_model=16, n_layer=1, n_head=2, d_inner=16, pad_token_id=5)
    funnel = small("funnel", block_sizes=[1, 1], d_model=16, n_head=2, d_head=8, d_inner=16)
    for model, name in ((xlnet, "XLNet"), (funnel, "Funnel")):
        with pytest.raises(InputError, match=rf"{name}.*the texts beside it.*another family"):
            Classifier(model)


def test_falcon_is_explained_by_gradients_and_refused_where_it_would_be_switched_to_eager_attention():
    ids = torch.tensor([[3, 4, 5], [6, 7, 2]])
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "pad_token_id": 2}
    falcon = small("falcon", bos_token_id=1, eos_token_id=1, **sizes)
    mask = (ids != 2).long()
    assert torch.isfinite(veridical.attribute(falcon, ids, mask, "input_x_gradient")).all()
    for name in ("attention", "attnlrp", "alti"):
        with pytest.raises(InputError, match=r"Falcon.*attn_implementation=\"eager\""):
            veridical.attribute(falcon, ids, mask, name)
    eager = small("falcon", bos_token_id=1, eos_token_id=1, attn_implementation="eager", **sizes)
    scores = veridical.attribute(eager, ids, mask, "attention")
    torch.testing.assert_close(scores.sum(-1), torch.ones(2))
    with pytest.raises(InputError, match=r"Falcon.*not taken apart; methods that decompose"):
        veridical.attribute(eager, ids, mask, "alti")


def test_half_precision_is_refused():
    model, _ = tiny("bert")
    with pytest.raises(InputError, match="float32"):
        check(model.to(torch.bfloat16))


def test_attentions_that_did_not_come_back_are_an_error(monkeypatch):
    model, _ = tiny("bert", attn_implementation="sdpa")
    assert model.config._attn_implementation == "sdpa"
    monkeypatch.setattr(type(model), "set_attn_implementation", lambda self, name: None)
    with pytest.raises(InputError, match="0 attentions"):
        check(model)


@pytest.mark.parametrize("family", TRANSFORMERS)
def test_checking_leaves_the_model_as_it_was(family):
    model, tokenizer = tiny(family)
    # transformers installs recording hooks of its own, for good, when first asked for hidden states
    model(**next(batches(tokenizer)), output_hidden_states=True, output_attentions=True)
    hooks = [dict(module._forward_hooks) for module in model.modules()]
    model.train()
    model.base_model.eval()  # a frozen encoder in a model under training
    modes = [module.training for module in model.modules()]
    implementation = model.config._attn_implementation
    before = copy.deepcopy(model.state_dict())
    state = torch.get_rng_state()
    check(model)
    assert [module.training for module in model.modules()] == modes
    assert model.config._attn_implementation == implementation
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert [dict(module._forward_hooks) for module in model.modules()] == hooks


def test_a_model_is_rebuilt_once(monkeypatch):
    model, tokenizer = tiny("bert")
    check(model, next(batches(tokenizer)))
    monkeypatch.setattr(rebuild, "compare", None)
    check(model)
    with pytest.raises(TypeError):
        check(tiny("bert")[0])


def test_the_steps_compose_into_logits_that_differentiate_like_the_model():
    """Chained through all layers, with attention frozen, they are a function of the embedding output."""
    model, tokenizer = tiny("bert")
    model.set_attn_implementation("eager")
    inputs = next(batches(tokenizer))
    out = model(**inputs, output_attentions=True, output_hidden_states=True)
    wired = wire(model)
    x = start = out.hidden_states[0].detach().requires_grad_()
    for layer, attention in zip(wired.layers, out.attentions, strict=True):
        x = layer_steps(layer, x, attention.detach()).output
    logits = head_steps(wired.head, x, inputs["attention_mask"]).logits
    torch.testing.assert_close(logits, out.logits, atol=2e-5, rtol=1e-5)
    (gradient,) = torch.autograd.grad(logits[:, 0].sum(), start)
    assert gradient.abs().max() > 1e-3
    padded = inputs["attention_mask"] == 0
    assert (gradient[padded] == 0).all()


def test_norm_and_affine_are_the_modules():
    torch.manual_seed(0)
    x = torch.randn(3, 5, 8) * 4 + 1
    norm, linear = torch.nn.LayerNorm(8, eps=0.1), torch.nn.Linear(8, 4, bias=False)
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    torch.testing.assert_close(Norm(norm.weight, norm.bias, 0.1, norm)(x), norm(x))
    torch.testing.assert_close(Norm(norm.weight, None, 0.1, norm)(x), norm(x) - norm.bias)
    rms = torch.nn.RMSNorm(8, eps=0.1)
    torch.nn.init.normal_(rms.weight)
    torch.testing.assert_close(Norm(rms.weight, None, 0.1, rms, "rms")(x), rms(x))
    torch.testing.assert_close(Affine(linear.weight, None, linear)(x), linear(x))


def test_weights_are_the_models_own_not_copies():
    model, _ = tiny("bert")
    layer = wire(model).layers[0]
    own = model.bert.encoder.layer[0].attention.self.value.weight
    assert layer.value.weight.data_ptr() == own.data_ptr()
    assert layer.value.weight.unflatten(0, (layer.heads, -1)).shape == (2, 16, 32)
