"""Which position the classification head reads: the first, the last, or all of them."""

from __future__ import annotations

from typing import Any, Literal

import torch

from veridical.core.errors import InputError
from veridical.core.records import Batch
from veridical.model.classifier import Classifier

Pool = Literal["first", "last", "mean", "late"]

# Encoders whose head reads the first token; the BiLSTM has one row, its attention weights.
FIRST = frozenset(
    "bert roberta xlm-roberta camembert distilbert electra deberta deberta-v2 big_bird big_bird_tanh albert mpnet "
    "ernie nomic_bert bilstm-attention".split()
)
# Decoders, whose head reads the last token that is not the pad token.
LAST = frozenset(
    "llama mistral mixtral ministral qwen2 qwen3 smollm3 gemma gemma2 gemma3_text olmo olmo2 olmo3 phi phi3 starcoder2 "
    "stablelm gpt2 gpt_neo gpt_neox gptj bloom opt falcon".split()
)
# What families with a choice call it. late: every position has logits of its own, of which the mean is taken.
NAMES: dict[str, Pool] = {"cls": "first", "bos": "first", "mean": "mean", "late": "late"}


def pool_of(config: Any) -> Pool | None:
    """What the head of a model with this configuration reads; None where it is not known."""
    said = getattr(config, "classifier_pooling", None)
    if said is not None:
        return NAMES.get(said)
    return "first" if config.model_type in FIRST else "last" if config.model_type in LAST else None


def reads_last(config: Any) -> bool:
    """Whether the head looks for the last token, as decoders' do."""
    return pool_of(config) == "last"


def last_positions(ids: torch.Tensor, pad: int | None) -> torch.Tensor:
    """Where a decoder's head reads each row. [B, T] -> [B]

    It goes by ids, never by the mask: the last id that is not the pad token's, wherever that one stands.
    """
    if pad is None:
        return torch.full_like(ids[:, 0], ids.shape[1] - 1)
    return (torch.arange(ids.shape[1], device=ids.device) * (ids != pad)).argmax(-1)


def read_weights(
    pool: Pool, mask: torch.Tensor, ids: torch.Tensor | None, pad: int | None, dtype: torch.dtype
) -> torch.Tensor:
    """The weight of every position in what the head reads; each row sums to 1. Ids tell where a text ends. [B, T]"""
    if pool in ("mean", "late"):
        attended = mask.to(dtype)
        return attended / attended.sum(-1, keepdim=True)
    place = torch.zeros(len(mask), dtype=torch.long, device=mask.device)
    if pool == "last":
        if ids is None:
            raise ValueError("where a text ends is told by its ids")
        place = last_positions(ids, pad)
    return torch.nn.functional.one_hot(place, mask.shape[1]).to(dtype)


def read_row(clf: Classifier, matrix: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The row the head reads, or for a head that averages positions the mean of their rows. [B, R, T] -> [B, T]"""
    pool = pool_of(clf.model.config)
    if pool is None:
        raise InputError(
            f"It is not known which position the head of a {clf.family!r} model reads, so its attention has no one "
            "row to show; use a gradient method or attention_x_gradient."
        )
    if pool == "first":
        return matrix[:, 0]
    if pool == "last":
        place = last_positions(batch.ids, clf.model.config.pad_token_id)
        return matrix[torch.arange(len(matrix), device=matrix.device), place]
    weights = read_weights(pool, batch.mask, None, None, matrix.dtype)
    return (weights[:, None] @ matrix)[:, 0]
