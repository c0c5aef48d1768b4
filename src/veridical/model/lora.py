"""Low-rank adapters (LoRA, Hu et al. 2022) on the attention's maps, and folding them into the weights.

A model with adapters computes W x + B A x where its weight says W alone. Whatever reads weights, as the decompositions
do, would read the model from before the training, in silence: adapters are folded in, W + B A, before anything is
explained or saved.
"""

from __future__ import annotations

import copy
import importlib.util
import warnings
from typing import Any

import torch

from veridical.core.errors import Caution, InputError

_SPLIT = r".*\.self_attn\.(q|k|v|o)_proj"
# Queries, keys, values and what comes out, by family; a family that has them in one matrix has one name for the three.
MAPS: dict[str, str] = {
    **dict.fromkeys("llama mistral qwen2 qwen3 smollm3 gemma gemma2 gemma3_text olmo2".split(), _SPLIT),
    "phi": r".*\.self_attn\.(q_proj|k_proj|v_proj|dense)",
    "phi3": r".*\.self_attn\.(qkv_proj|o_proj)",
    "opt": r".*\.self_attn\.(q_proj|k_proj|v_proj|out_proj)",
    "gpt2": r".*\.attn\.(c_attn|c_proj)",
    "gpt_neox": r".*\.attention\.(query_key_value|dense)",
    "bloom": r".*\.self_attention\.(query_key_value|dense)",
    **dict.fromkeys(
        "bert roberta xlm-roberta camembert electra".split(), r".*\.attention\.(self\.(query|key|value)|output\.dense)"
    ),
    "distilbert": r".*\.attention\.(q|k|v|out)_lin",
    "mpnet": r".*\.attention\.attn\.(q|k|v|o)",
}


def insist_on_peft() -> None:
    if importlib.util.find_spec("peft") is None:
        raise InputError(
            "train.lora needs peft, which is not installed; run `pip install peft`, or install veridical[lora], or "
            "leave lora out: then all weights are trained."
        )


def add_adapters(model: Any, rank: int, seed: int) -> None:
    """Adapters of this rank on the attention's maps, in place: they and the head train, everything else is held."""
    family = model.config.model_type
    if family not in MAPS:
        raise InputError(
            f"lora is {rank}, but it is not known what the attention's maps of a {family!r} model are called; leave "
            "lora out: then all weights are trained."
        )
    from peft import LoraConfig, inject_adapter_in_model

    # Scaled by 1: `alpha` would be one more factor on the rate at which B A grows.
    how = LoraConfig(r=rank, lora_alpha=rank, lora_dropout=0.0, target_modules=MAPS[family], bias="none")
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set to False")  # of Conv1D, which it mends itself
        torch.default_generator.manual_seed(seed)
        inject_adapter_in_model(how, model)
    encoder = {id(parameter) for parameter in model.base_model.parameters()}
    for parameter in model.parameters():
        if id(parameter) not in encoder:
            parameter.requires_grad_(True)


def has_adapters(model: torch.nn.Module) -> bool:
    """Whether some of its maps have adapters beside their weights, by whatever means they came there."""
    return any(hasattr(module, "lora_A") or hasattr(module, "base_layer") for module in model.modules())


def fold_adapters(model: Any) -> Any:
    """The model with its adapters added to the weights, in place, and every parameter trainable again."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    off = any(isinstance(module, BaseTunerLayer) and module.disable_adapters for module in model.modules())
    if hasattr(model, "merge_and_unload"):  # peft's own wrapper, which may have saved other modules too
        model = model.unload() if off else model.merge_and_unload()
    for name, module in list(model.named_modules()):
        if isinstance(module, BaseTunerLayer):
            if not off:  # else it computes without them, and is explained so
                module.merge(safe_merge=True)
            above, _, last = name.rpartition(".")
            setattr(model.get_submodule(above), last, module.get_base_layer())
    model.requires_grad_(True)
    return model


def with_folded_adapters(model: Any) -> Any:
    """The model, or of one with adapters a copy in which they are part of the weights, which is said."""
    if not isinstance(model, torch.nn.Module) or not has_adapters(model):
        return model
    warnings.warn(
        f"{type(model).__name__} has adapters (LoRA); a copy of it is explained in which they are folded into the "
        "weights, whose predictions may differ in the last digits.",
        Caution,
        stacklevel=3,
    )
    insist_on_peft()
    return fold_adapters(copy.deepcopy(model))
