"""Reading a model's files with transformers, whose errors become sentences."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from veridical.core.errors import InputError
from veridical.model.sound import insist_on_settings

OURS = {"bilstm-attention": "veridical.model.bilstm", "big_bird_tanh": "veridical.model.tanh_head"}  # by model type


def read_config(where: str, spec: str) -> Any:
    """A configuration whose settings can be meant."""
    from transformers import AutoConfig, PretrainedConfig

    settings = PretrainedConfig.get_config_dict(where)[0]
    insist_on_settings(settings, spec)
    kind = settings.get("model_type")
    if kind in OURS:  # the module registers its model with the Auto classes
        importlib.import_module(OURS[kind])
    return AutoConfig.from_pretrained(where, trust_remote_code=False)


def read_model(where: str, config: Any, seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Model, tokenizer, and what is missing, spare or of another size in the files."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    # A head that the files lack is drawn from the seed, and nobody else's random numbers move.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        # Of sizes that do not fit insist_on_fit says more than the error would.
        model, info = _from_safetensors(AutoModelForSequenceClassification, where, config, ignore_mismatched_sizes=True)
    return model, AutoTokenizer.from_pretrained(where, trust_remote_code=False), info


def read_language_model(where: str, config: Any) -> tuple[Any, set[str]]:
    """The causal language model of the same files, which has a head for every token, and the weights that the files do
    not have."""
    from transformers import AutoModelForCausalLM

    model, info = _from_safetensors(AutoModelForCausalLM, where, config)
    return model, set(info["missing_keys"])


def _from_safetensors(kind: Any, where: str, config: Any, **more: Any) -> tuple[Any, dict[str, Any]]:
    """The model and what loading it told: float32, no other format of weights, no code of the files' own."""
    with quietly():
        return kind.from_pretrained(
            where,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **more,
        )


@contextmanager
def refusing(spec: str) -> Iterator[None]:
    """One sentence for whatever transformers raises on files that it cannot read: it may be an error of any type."""
    from safetensors import SafetensorError

    try:
        yield
    except InputError:
        raise
    except SafetensorError as problem:
        raise InputError(
            f"The weights of {spec!r} cannot be read ({_reason(problem)}); the file is cut off, damaged or no "
            "safetensors: fetch it again."
        ) from problem
    except ImportError as problem:
        raise InputError(
            f"{spec!r} needs a library that is not installed ({_reason(problem)}); install it, or take a model "
            "that does without."
        ) from problem
    except Exception as problem:
        raise InputError(
            f"No classifier could be loaded from {spec!r} ({_reason(problem)}). Give a folder with config.json, "
            "model.safetensors and a tokenizer, a hub id, a run folder, 'minilm', 'mpnet' or 'smollm2'."
        ) from problem


@contextmanager
def quietly() -> Iterator[None]:
    """Without transformers' bar and report on loading; what matters of it we say ourselves."""
    from transformers.utils import logging

    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()


def _reason(problem: Exception) -> str:
    """The first line of an error's message, and the second where the first only announces it."""
    lines = [line.strip() for line in str(problem).strip().splitlines() if line.strip()]
    if not lines:
        return type(problem).__name__
    if isinstance(problem, KeyError):
        return f"there is no {lines[0]}"
    return (" ".join(lines[:2]) if lines[0].endswith(":") else lines[0]).rstrip(".")
