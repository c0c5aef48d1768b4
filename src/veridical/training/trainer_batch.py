"""A trainer's tensors as the terms see them: its batches, the word vectors of its pass, the sizes of terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from veridical.core.errors import InputError
from veridical.core.records import Batch, Encoded
from veridical.model.classifier import Classifier
from veridical.training.masking import Masks
from veridical.training.term import BASE, Ready


@contextmanager
def word_vectors(clf: Classifier) -> Iterator[list[torch.Tensor]]:
    """What the embedding layer returns inside, as `Classifier.forward` keeps it."""
    seen: list[torch.Tensor] = []
    handle = clf.model.get_input_embeddings().register_forward_hook(lambda module, given, output: seen.append(output))
    try:
        yield seen
    finally:
        handle.remove()


def as_batch(inputs: Mapping[str, Any], encoded: Sequence[Encoded]) -> Batch:
    """The trainer's own tensors as a batch."""
    ids = inputs["input_ids"]
    if len(ids) != len(encoded):
        raise InputError(
            f"The data collator made {len(ids)} rows of {len(encoded)} examples; use one that keeps a row for each."
        )
    free, here = torch.zeros(ids.shape, dtype=torch.bool), ids.cpu()
    for row, own in enumerate(encoded):
        if here[row, : len(own.ids)].tolist() != list(own.ids):
            raise InputError(
                "A row of the batch does not begin with its example's tokens: it is padded on the left, or the data "
                "collator changes tokens; set tokenizer.padding_side='right' and use a collator that keeps them."
            )
        free[row, : len(own.free)] = torch.tensor(own.free)
    mask = inputs["attention_mask"].bool() if "attention_mask" in inputs else torch.ones_like(ids, dtype=torch.bool)
    types = inputs["token_type_ids"] if "token_type_ids" in inputs else torch.zeros_like(ids)
    return Batch(tuple(encoded), ids, types, mask, free.to(ids.device))


def term_sizes(
    terms: Sequence[Ready],
    batches: Sequence[tuple[Sequence[Encoded], torch.Tensor]],
    masks: Masks | None = None,
    step: int = 0,
) -> dict[str, float]:
    """Each term's size over some batches, all but cross-entropy of the whole texts; under "" how many examples."""
    sizes = dict.fromkeys((one.name for one in terms), 0.0)
    for encoded, labels in batches:
        drawn = [None] * len(encoded) if masks is None or len(terms) == 1 else masks.drawn(encoded, step)
        whole = [row for row, new in enumerate(drawn) if new is None]
        for one in terms:
            rows = range(len(encoded)) if one.name == BASE else whole
            sizes[one.name] += one.size([encoded[row] for row in rows], labels[list(rows)]) if rows else 0.0
    return {**sizes, "": float(sum(len(encoded) for encoded, _ in batches))}


def without(outputs: Any, config: Any) -> Any:
    """The output without what only the terms asked for: the trainer takes all of it for predictions."""
    kept = {"attentions": config.output_attentions, "hidden_states": config.output_hidden_states}
    return type(outputs)(**{key: value for key, value in outputs.items() if kept.get(key, True)})
