"""From text to tokens: which characters and words they cover, which may be explained, and what did not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from veridical.core.errors import InputError
from veridical.core.records import Encoded, Example
from veridical.core.text import align, trim

UNLIMITED = 1_000_000  # tokenizers write 1e30 when they know no limit


def token_limit(model: Any, tokenizer: Any) -> int:
    """Most tokens, special ones included, that the model can read."""
    limits = [UNLIMITED]
    if tokenizer is not None and tokenizer.model_max_length < UNLIMITED:
        limits.append(int(tokenizer.model_max_length))
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions and positions > 0:  # XLNet has -1: no limit
        # RoBERTa-like models number positions from pad_id + 1: so many rows of the table are never used.
        table = next((m for n, m in model.named_modules() if n.endswith("position_embeddings")), None)
        unused = table.padding_idx + 1 if isinstance(table, torch.nn.Embedding) and table.padding_idx else 0
        limits.append(int(positions) - unused)
    return min(limits)


def encode(tokenizer: Any, examples: Sequence[Example], limit: int, overlap: int | None = None) -> list[Encoded]:
    """One encoding per example, or with `overlap` one per window of its text (see `Classifier.encode`)."""
    windows: dict[int, list[Encoded]] = {}
    for paired in (False, True):
        chosen = [i for i, e in enumerate(examples) if (e.context is not None) is paired]
        if not chosen:
            continue
        # Cutting is done here, not by the tokenizer, whose file may carry a truncation of its own.
        raw = tokenizer(
            [examples[i].text for i in chosen],
            [examples[i].context for i in chosen] if paired else None,
            truncation=False,
            padding=False,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_token_type_ids="token_type_ids" in tokenizer.model_input_names,
            return_attention_mask=False,
            verbose=False,
        )
        for row, index in enumerate(chosen):
            windows[index] = _fit(_whole(raw, row, examples[index]), limit, overlap)
    return [window for index in range(len(examples)) for window in windows[index]]


def _whole(raw: Any, row: int, example: Example) -> Encoded:
    ids = raw["input_ids"][row]
    of_text = [sequence == 0 for sequence in raw.sequence_ids(row)]
    special = raw["special_tokens_mask"][row]
    free = [mine and not is_special for mine, is_special in zip(of_text, special, strict=True)]
    if not any(free):
        raise InputError(f"Example {example.id!r} has no text to explain; give a text that is not empty.")
    spans = [
        trim(example.text, span) if f else (0, 0) for span, f in zip(raw["offset_mapping"][row], free, strict=True)
    ]
    words = iter(align(example.text, [span for span, f in zip(spans, free, strict=True) if f]))
    types = raw["token_type_ids"][row] if "token_type_ids" in raw else [0] * len(ids)
    return Encoded(
        example=example,
        ids=tuple(ids),
        types=tuple(types),
        spans=tuple(spans),
        words=tuple(next(words) if f else -1 for f in free),
        free=tuple(free),
    )


def _fit(whole: Encoded, limit: int, overlap: int | None) -> list[Encoded]:
    """The encoding as it is when it fits; else its first tokens, or windows that share `overlap` tokens."""
    over = len(whole.ids) - limit
    if over <= 0:
        return [whole]
    text = [i for i, free in enumerate(whole.free) if free]
    room = len(text) - over
    if room < 1:
        taken = "Special tokens leave" if whole.example.context is None else "Its context leaves"
        raise InputError(
            f"{taken} no room for the text of example {whole.example.id!r} in {limit} tokens; shorten the context, "
            "raise max_length or use a model that reads more."
        )
    if overlap is None:
        return [_keep(whole, set(text[:room]), cut=over)]
    if not 0 <= overlap < room:
        raise InputError(f"Windows of {room} tokens cannot share {overlap}; choose an overlap from 0 to {room - 1}.")
    starts = [*range(0, len(text) - room, room - overlap), len(text) - room]
    return [_keep(whole, set(text[start : start + room]), start=start) for start in dict.fromkeys(starts)]


def _keep(whole: Encoded, chosen: set[int], cut: int = 0, start: int = 0) -> Encoded:
    kept = [i for i, free in enumerate(whole.free) if not free or i in chosen]
    return Encoded(
        example=whole.example,
        ids=tuple(whole.ids[i] for i in kept),
        types=tuple(whole.types[i] for i in kept),
        spans=tuple(whole.spans[i] for i in kept),
        words=tuple(whole.words[i] for i in kept),
        free=tuple(whole.free[i] for i in kept),
        cut=cut,
        start=start,
    )
