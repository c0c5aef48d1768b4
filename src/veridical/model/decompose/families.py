"""Where each family of transformers keeps its parts: one row of module names per `config.model_type`.

Attention probabilities always come from the model, so queries, keys, rotations, relative positions and sliding windows
need no names here. `wiring` resolves a row to weights, `rebuild.check` proves that they are the model's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

NormKind = Literal["layer", "rms", "rms+1"]  # rms: not centred, no bias; rms+1: its gain is 1 + weight


@dataclass(frozen=True)
class Wiring:
    """Names of the parts. Paths start at the encoder, at one of its layers, or (head) at the classifier.

    A setting written `config.<option>` is what the model's configuration says.
    """

    # encoder
    layers: str = "encoder.layer"
    in_group: str | None = None  # `layers` are groups that several layers share; each holds its one layer here
    final_norm: str | None = None  # after the last layer
    projection: str | None = None  # of the last states to another width, behind that; may be None in the model
    # layer
    norm: NormKind = "layer"
    value: str = "attention.self.value"
    value_bias: str | None = None  # where it is not the value module's own
    # `value` may hold queries and keys as well: q, k, v one after another, or so for each head.
    fused: Literal["no", "qkv", "per head"] = "no"
    out: str = "attention.output.dense"
    norm1: str | None = "attention.output.LayerNorm"
    post1: str | None = None  # a norm of what attention brings, before it is added
    inner: tuple[str, ...] = ("intermediate.dense",)  # gate and up, where they are two
    activation: str = "intermediate.intermediate_act_fn"
    outer: str = "output.dense"
    norm2: str | None = "output.LayerNorm"
    post2: str | None = None  # the same of the feed-forward part
    pre_norm: bool | str = False  # x + f(norm(x)) instead of norm(x + f(x))
    parallel: bool | str = False  # the feed-forward part reads the layer's input, as attention does
    gated: bool = False  # `inner` gives two halves: activation(first) * second
    # head; an activation is a path, a name transformers knows, or `config.<option>` holding such a name
    head_inner: str | None = "classifier.dense"
    head_activation: str = "tanh"
    head_norm: str | None = None
    head_out: str = "classifier.out_proj"


_BERT = Wiring()
_DEBERTA = replace(_BERT, head_inner="pooler.dense", head_activation="config.pooler_hidden_act", head_out="classifier")
_LLAMA = Wiring(
    layers="layers",
    final_norm="norm",
    norm="rms",
    value="self_attn.v_proj",
    out="self_attn.o_proj",
    norm1="input_layernorm",
    inner=("mlp.gate_proj", "mlp.up_proj"),
    activation="mlp.act_fn",
    outer="mlp.down_proj",
    norm2="post_attention_layernorm",
    pre_norm=True,
    gated=True,
    head_inner=None,
    head_out="score",
)
_GEMMA2 = replace(
    _LLAMA,
    norm="rms+1",
    post1="post_attention_layernorm",
    norm2="pre_feedforward_layernorm",
    post2="post_feedforward_layernorm",
)
_GPT_NEOX = replace(
    _LLAMA,
    norm="layer",
    final_norm="final_layer_norm",
    value="attention.query_key_value",
    fused="per head",
    out="attention.dense",
    inner=("mlp.dense_h_to_4h",),
    activation="mlp.act",
    outer="mlp.dense_4h_to_h",
    gated=False,
    parallel="config.use_parallel_residual",
)
_DECODERS: dict[str, Wiring] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "smollm3"), _LLAMA),
    "gemma": replace(_LLAMA, norm="rms+1"),
    **dict.fromkeys(("gemma2", "gemma3_text"), _GEMMA2),
    "olmo2": replace(
        _LLAMA, norm1=None, post1="post_attention_layernorm", norm2=None, post2="post_feedforward_layernorm"
    ),
    "phi3": replace(
        _LLAMA,
        value="self_attn.qkv_proj",
        fused="qkv",
        inner=("mlp.gate_up_proj",),
        activation="mlp.activation_fn",
    ),
    "phi": replace(
        _LLAMA,
        norm="layer",
        final_norm="final_layernorm",
        out="self_attn.dense",
        norm2="input_layernorm",
        inner=("mlp.fc1",),
        activation="mlp.activation_fn",
        outer="mlp.fc2",
        gated=False,
        parallel=True,
    ),
    "gpt2": replace(
        _LLAMA,
        norm="layer",
        layers="h",
        final_norm="ln_f",
        value="attn.c_attn",
        fused="qkv",
        out="attn.c_proj",
        norm1="ln_1",
        norm2="ln_2",
        inner=("mlp.c_fc",),
        activation="mlp.act",
        outer="mlp.c_proj",
        gated=False,
    ),
    "gpt_neox": _GPT_NEOX,
    "bloom": replace(
        _GPT_NEOX,
        layers="h",
        final_norm="ln_f",
        value="self_attention.query_key_value",
        out="self_attention.dense",
        activation="mlp.gelu_impl",
        parallel=False,
    ),
    "opt": replace(
        _LLAMA,
        norm="layer",
        layers="decoder.layers",
        final_norm="decoder.final_layer_norm",
        projection="decoder.project_out",
        out="self_attn.out_proj",
        norm1="self_attn_layer_norm",
        norm2="final_layer_norm",
        inner=("fc1",),
        activation="activation_fn",
        outer="fc2",
        gated=False,
        pre_norm="config.do_layer_norm_before",
    ),
}
ROWS: dict[str, Wiring] = {
    "bert": replace(
        _BERT, head_inner="bert.pooler.dense", head_activation="bert.pooler.activation", head_out="classifier"
    ),
    "ernie": replace(
        _BERT, head_inner="ernie.pooler.dense", head_activation="ernie.pooler.activation", head_out="classifier"
    ),
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "mpnet": replace(_BERT, value="attention.attn.v", out="attention.attn.o", norm1="attention.LayerNorm"),
    "electra": replace(_BERT, head_activation="classifier.activation"),
    "big_bird": replace(_BERT, head_activation="config.hidden_act"),
    "big_bird_tanh": _BERT,
    "albert": Wiring(
        layers="encoder.albert_layer_groups",
        in_group="albert_layers",
        value="attention.value",
        out="attention.dense",
        norm1="attention.LayerNorm",
        inner=("ffn",),
        activation="activation",
        outer="ffn_output",
        norm2="full_layer_layer_norm",
        head_inner="albert.pooler",
        head_out="classifier",
    ),
    "deberta": replace(_DEBERTA, value="attention.self.in_proj", value_bias="attention.self.v_bias", fused="per head"),
    "deberta-v2": replace(_DEBERTA, value="attention.self.value_proj"),
    "distilbert": Wiring(
        layers="transformer.layer",
        value="attention.v_lin",
        out="attention.out_lin",
        norm1="sa_layer_norm",
        inner=("ffn.lin1",),
        activation="ffn.activation",
        outer="ffn.lin2",
        norm2="output_layer_norm",
        head_inner="pre_classifier",
        head_activation="relu",
        head_out="classifier",
    ),
    "modernbert": Wiring(
        layers="layers",
        final_norm="final_norm",
        value="attn.Wqkv",
        fused="qkv",
        out="attn.Wo",
        norm1="attn_norm",
        inner=("mlp.Wi",),
        activation="mlp.act",
        outer="mlp.Wo",
        norm2="mlp_norm",
        pre_norm=True,
        gated=True,
        head_inner="head.dense",
        head_activation="head.act",
        head_norm="head.norm",
        head_out="classifier",
    ),
    "nomic_bert": replace(
        _LLAMA,
        final_norm=None,
        norm="layer",
        norm1="post_attention_layernorm",
        activation="mlp.act_fn",
        norm2="post_mlp_layernorm",
        pre_norm=False,
        head_inner="nomic_bert.pooler.dense",
        head_activation="nomic_bert.pooler.activation",
        head_out="classifier",
    ),
    "eurobert": replace(_LLAMA, head_inner="dense", head_activation="activation", head_out="classifier"),
    **_DECODERS,
}
# What is known to come out wrong, and why.
REFUSED: dict[str, str] = {
    "falcon": "Falcon computes something else once it is switched to eager attention (it then sees tokens to come, and "
    "its logits change), so its layers are not taken apart",
}
