"""The pad token of models that find the end of a text by it."""

from __future__ import annotations

from typing import Any

import torch

from veridical.core.errors import InputError
from veridical.model.pooling import last_positions, reads_last


def with_pad_token(model: Any, tokenizer: Any) -> None:
    """Give a decoder that has none a pad token: its tokenizer's, else the end of a text, else the unknown one.

    Its head reads the last token that is not the pad token, and without one refuses more than one text at a time. The
    tokenizer pads on the right, as everything here does.
    """
    config = model.config
    if not reads_last(config):
        return
    tokenizer.padding_side = "right"
    if config.pad_token_id is not None:
        return
    rows = model.get_input_embeddings().weight.shape[0]
    choices = (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id)
    token = next((token for token in choices if token is not None and token < rows), None)
    if token is None:
        raise InputError(
            f"This {config.model_type!r} model has no pad token, by which its head finds the end of a text, and its "
            "tokenizer none to take for it; set tokenizer.pad_token to a token that no text has."
        )
    config.pad_token_id = token
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(token)


def start_token(model: Any) -> int | None:
    """What a decoder reads where nothing of a text is left: the token that texts begin with, else that which ends them.

    Encoders have special tokens in every text. None where there is no such token: such a question is refused.
    """
    config = model.config
    if not reads_last(config):
        return None
    rows = model.get_input_embeddings().weight.shape[0]
    ends = config.eos_token_id
    choices = (config.bos_token_id, *(ends if isinstance(ends, (list, tuple)) else (ends,)))
    return next((token for token in choices if token is not None and 0 <= token < rows), None)


def insist_on_right_padding(config: Any, ids: torch.Tensor, mask: torch.Tensor) -> None:
    """Refuse rows of which a decoder's head would read padding, or that some decoders would count positions wrong in.

    ids, mask [B, T]
    """
    if not reads_last(config):
        return
    pad = config.pad_token_id
    if pad is None and len(ids) > 1:
        raise InputError(
            "This model has no pad_token_id, by which its head finds the last token of each row; set "
            "model.config.pad_token_id to the id that the rows are padded with, or give one row at a time."
        )
    read = last_positions(ids, pad)
    for row in range(len(ids)):
        if not bool(mask[row, 0]):
            raise InputError(
                f"Row {row} of input_ids is padded on the left, where decoders do not all count positions alike; set "
                "tokenizer.padding_side='right'."
            )
        if not bool(mask[row, read[row]]):
            raise InputError(
                f"The head reads the last id that is not pad_token_id ({pad}): in row {row} that is position "
                f"{int(read[row])}, which attention_mask leaves out; pad on the right with {pad}."
            )
