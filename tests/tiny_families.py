"""Configurations of the tiny models of further families: decoders, and encoders beside the first eight."""

from __future__ import annotations

from typing import Any

from transformers import AutoConfig, PretrainedConfig, PreTrainedTokenizerFast

DECODERS: tuple[str, ...] = (
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "smollm3",
    "gemma",
    "gemma2",
    "gemma3_text",
    "olmo2",
    "phi3",
    "phi",
    "gpt2",
    "gpt_neox",
    "bloom",
    "opt",
)
OTHERS: tuple[str, ...] = ("falcon",)  # decoders that are refused in part
ENCODERS: tuple[str, ...] = ("mpnet", "ernie", "albert", "nomic_bert", "eurobert")
# Whose layers are RMS norms and linear maps without a bias, and whose positions are rotations: nothing but word vectors
# speaks for a class.
WITHOUT_BIASES = ("llama", "mistral", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "smollm3", "olmo2")

_GROUPED = {"num_key_value_heads": 2, "head_dim": 12}
_WINDOW = {"sliding_window": 8, "layer_types": ["full_attention", "sliding_attention"]}
_SETTINGS: dict[str, dict[str, Any]] = {
    "llama": _GROUPED,
    "mistral": {**_GROUPED, "sliding_window": None},
    "qwen2": {"num_key_value_heads": 2},
    "qwen3": _GROUPED,
    "smollm3": {"num_key_value_heads": 2, "no_rope_layers": [1, 0]},
    "gemma": _GROUPED,
    "gemma2": {**_GROUPED, **_WINDOW, "query_pre_attn_scalar": 12},
    "gemma3_text": {**_GROUPED, **_WINDOW, "query_pre_attn_scalar": 12},
    "olmo2": {"num_key_value_heads": 2},
    "phi3": {"num_key_value_heads": 2},
    "phi": {},
    "gpt_neox": {},
    "opt": {"word_embed_proj_dim": 32, "ffn_dim": 48},
    "ernie": {},
    "mpnet": {},
    "albert": {"embedding_size": 24, "num_hidden_groups": 2},
    "nomic_bert": {},
    "eurobert": {"num_key_value_heads": 2, "classifier_pooling": "late", "mask_token_id": 4},
}


def config_of(
    family: str, tokenizer: PreTrainedTokenizerFast, small: dict[str, Any], settings: dict[str, Any]
) -> PretrainedConfig:
    """The configuration of a decoder or of one of the further encoders, with four heads: two share keys and values."""
    sizes = {**small, "num_attention_heads": 4}
    ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    if family == "gpt2":
        own = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_inner": 48, "n_positions": sizes["max_position_embeddings"]}
        sizes = {key: sizes[key] for key in ("vocab_size", "pad_token_id")} | own
    elif family == "bloom":
        sizes = {key: sizes[key] for key in ("vocab_size", "pad_token_id")} | {"hidden_size": 32, "n_layer": 2}
        sizes["n_head"] = 4
    elif family == "mpnet":
        sizes["max_position_embeddings"] += 2
    given = ids if family in (*DECODERS, *OTHERS) or family == "eurobert" else {}
    return AutoConfig.for_model(family, **{**sizes, **given, **_SETTINGS.get(family, {}), **settings})
