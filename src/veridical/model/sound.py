"""Is a model what it claims to be? What would be wrong in silence, or break later, is refused here in a sentence."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from veridical.core.errors import Caution, InputError
from veridical.core.readable import shown

# What families call their sizes in config.json; torch takes some of them below 1 and makes a model without layers.
SIZES = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "hidden_size", "dim", "d_model", "n_embd")
SIZES += ("num_attention_heads", "n_heads", "n_head", "intermediate_size", "hidden_dim", "vocab_size")
ACTIVATIONS = ("hidden_act", "activation", "activation_function", "hidden_activation")
IN_A_LAYER = re.compile(r"\.\d+\.")  # bert.encoder.layer.3.output.dense.weight
FEWEST_TOKENS = 3  # tokenizers made without a vocabulary have up to 2 beside the special ones

# Families whose logits of a text depend on what it is padded to, whatever is done about it.
SWAYED = {
    "xlnet": "XLNet's head reads the end of the padded row, and its word vectors have no row for each text",
    "funnel": "Funnel halves the length of a row between its blocks, so that padding enters the text",
}


def insist_on_family(config: Any) -> None:
    """Of a model's type: padding does not change its answers."""
    reason = SWAYED.get(getattr(config, "model_type", ""))
    if reason is not None:
        raise InputError(
            f"{reason}: a text's logits would depend on the texts beside it, so nothing here can be believed of it; "
            "choose a model of another family."
        )


def insist_on_settings(settings: Mapping[str, Any], spec: str) -> None:
    """Of a config.json as it was written: sizes of at least 1, labels that are a mapping, activations that exist."""
    from transformers.activations import ACT2FN

    for name in SIZES:
        size = settings.get(name)
        if isinstance(size, (int, float)) and size < 1:
            raise InputError(f"{name} in config.json of {spec!r} is {size}; it must be at least 1: mend the file.")
    for name in ACTIVATIONS:
        activation = settings.get(name)
        if isinstance(activation, str) and activation not in ACT2FN:
            raise InputError(
                f"{name} in config.json of {spec!r} is {activation!r}; transformers has none of that name."
            )
    labels = settings.get("id2label")
    if labels is not None and not (isinstance(labels, dict) and all(str(key).isdecimal() for key in labels)):
        raise InputError(
            f"id2label in config.json of {spec!r} is {str(labels)[:60]}; it must be an object with the names of the "
            'classes by number, like {"0": "negative", "1": "positive"}.'
        )


def insist_on_fit(model: Any, info: Mapping[str, Any], spec: str, *, new_head: bool, shortened: bool) -> None:
    """Of what transformers tells on loading: the weights are those of the configuration.

    What stands on the encoder may be missing, and of another size if it is made anew.
    """
    encoder = f"{model.base_model_prefix}."
    for name, held, wanted in sorted(info.get("mismatched_keys", [])):
        if name.startswith(encoder) or not new_head:
            raise InputError(
                f"The weights of {spec!r} do not fit its config.json: {name} is {list(held)} in the file and "
                f"{list(wanted)} by the configuration; mend config.json (id2label, the sizes) or fetch both again."
            )
    table = model.get_input_embeddings().weight
    words = {name for name, weight in model.named_parameters() if weight is table}
    missing = sorted(info["missing_keys"])
    lost = [name for name in missing if name in words or (name.startswith(encoder) and IN_A_LAYER.search(name))]
    if lost:
        raise InputError(
            f"The weights of {spec!r} are not those of its config.json: {lost[0]} and {len(lost) - 1} more are not in "
            "the file; mend config.json (model_type, the number of layers) or fetch both again."
        )
    spare = [name for name in sorted(info["unexpected_keys"]) if name.startswith(encoder) and IN_A_LAYER.search(name)]
    if spare and not shortened:
        raise InputError(
            f"The weights of {spec!r} are not those of its config.json, which has no place for {spare[0]} and "
            f"{len(spare) - 1} more; mend the number of layers there, or write {spec}:layers=N if fewer are meant."
        )


def insist_on_floats(where: str, spec: str) -> None:
    """Whole numbers are what a quantisation leaves; read without its scales they are other weights. Headers only."""
    from safetensors import safe_open

    for path in sorted(Path(where).glob("*.safetensors")):
        with safe_open(path, framework="pt") as held:
            for name in held.keys():  # noqa: SIM118  it is no mapping
                kind = held.get_slice(name).get_dtype()
                if name.endswith((".weight", ".bias")) and kind.startswith(("I", "U", "BOOL")):
                    raise InputError(
                        f"{name} of {spec!r} is of type {kind} in {path.name}, and config.json tells of no "
                        "quantisation that would say how to read it; load the weights that it was made from."
                    )


def insist_on_finite(model: Any, name: str) -> None:
    """One pass over the weights, which leaves no copy of them behind."""
    for weight_name, weight in model.named_parameters():
        if weight.is_meta:
            raise InputError(f"{weight_name} of {name} is on the device 'meta', which holds no numbers; load it first.")
        if weight.is_floating_point() and weight.numel():
            ends = torch.stack(weight.detach().aminmax())  # NaN if any of them is
            if not bool(torch.isfinite(ends).all()):
                raise InputError(
                    f"{weight_name} of {name} holds values that are not finite numbers, so its predictions mean "
                    "nothing; take a checkpoint from before the training went wrong."
                )


def insist_on_answers(logits: Any, name: str) -> None:
    """Weights that are finite may yet give logits that are not: too large for float32, or changed since."""
    if not bool(torch.isfinite(torch.as_tensor(logits)).all()):
        raise InputError(
            f"{name} answers with logits that are not finite numbers, so its predictions mean nothing; check its "
            "weights, which may have been changed or be too large."
        )


def insist_on_vocabulary(model: Any, tokenizer: Any, name: str) -> None:
    """A tokenizer made of nothing but a configuration turns every word into [UNK]; one of another model has its ids."""
    if len(tokenizer) - len(set(tokenizer.all_special_ids)) < FEWEST_TOKENS:
        raise InputError(
            f"{name} has no tokenizer of its own: there is no vocabulary, and every word would be unknown; put the "
            "tokenizer's files (tokenizer.json, vocab.txt or the like) beside config.json."
        )
    rows = model.get_input_embeddings().weight.shape[0]
    if tokenizer.vocab_size > rows:
        raise InputError(
            f"The tokenizer of {name} has {tokenizer.vocab_size} tokens, but the model has vectors for {rows}; they do "
            "not belong together: take the tokenizer that the model was trained with."
        )


def in_float32(model: Any) -> Any:
    """The model, or where it computes in another precision a copy that computes in float32, which is said."""
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
        raise InputError(f"{shown(model)} is no model of transformers; give a sequence classifier, loaded as it is.")
    by_torch = any(type(part).__module__.startswith("torch.ao.nn.quantized") for part in model.modules())
    if by_torch or getattr(model, "is_quantized", False):
        raise InputError(
            f"{type(model).__name__} is quantised, and its weights cannot be taken apart or differentiated; load the "
            "weights that it was made from."
        )
    kinds = {weight.dtype for weight in model.parameters() if weight.is_floating_point()} - {torch.float32}
    if not kinds:
        return model
    names = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
    warnings.warn(
        f"{type(model).__name__} is in {names}; a copy of it in float32 is explained, whose predictions may differ in "
        "the last digits.",
        Caution,
        stacklevel=3,
    )
    return copy.deepcopy(model).float()


def attending_fully(model: Any) -> Any:
    """The model, or of a BigBird that skips blocks a copy with full attention."""
    if getattr(model.config, "attention_type", None) != "block_sparse":
        return model
    model = copy.deepcopy(model)
    with_full_attention(model.config, type(model).__name__)
    model.base_model.set_attention_type(model.config.attention_type)
    return model


def with_full_attention(config: Any, name: str) -> None:
    """BigBird ships with an attention that skips blocks and gives no attention maps: here it attends to everything."""
    if getattr(config, "attention_type", None) != "block_sparse":
        return
    config.attention_type = "original_full"
    same = (5 + 2 * config.num_random_blocks) * config.block_size
    warnings.warn(
        f"{name} is set to block_sparse attention; it is loaded with full attention, which BigBird itself takes for "
        f"texts of up to {same} tokens: predictions on longer ones may differ.",
        Caution,
        stacklevel=4,
    )
