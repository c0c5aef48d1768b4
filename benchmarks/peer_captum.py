"""The same methods by Captum, as someone who knows it would write them, batched and one by one.

The class to explain is the predicted one, as in Veridical; Captum takes it as an argument, so it is asked for in a
pass of its own without gradients. Batched means the batches Veridical uses. Captum's integrated gradients cut what
they put through the model at once by `internal_batch_size`, which for a batch of texts is the batch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from captum.attr import InputXGradient, IntegratedGradients, Saliency

from benchmarks.subject import Subject
from veridical.core.records import Batch
from veridical.model.ask import batches_of

Scores = list[np.ndarray]  # one [T] per text, 0 where Veridical explains nothing
Attribute = Callable[[torch.Tensor, torch.Tensor, tuple, torch.Tensor], torch.Tensor]


class Captum:
    """Captum's methods on a subject. Every method returns the scores of the batches' texts, in the texts' order."""

    def __init__(self, subject: Subject):
        self.subject, self.model = subject, subject.clf.model
        lengths = [len(e.ids) for e in subject.encoded]
        self.batched = self._collated(batches_of(lengths, subject.budget))
        self.single = self._collated([[i] for i in range(len(lengths))])

    def gradient(self, batches: Sequence[tuple[list[int], Batch]]) -> Scores:
        explainer = Saliency(self._logits)
        return self._run(
            batches, lambda text, _, more, classes: explainer.attribute(text, classes, False, more).norm(dim=-1)
        )

    def input_x_gradient(self, batches: Sequence[tuple[list[int], Batch]]) -> Scores:
        explainer = InputXGradient(self._logits)
        return self._run(batches, lambda text, _, more, classes: explainer.attribute(text, classes, more).sum(-1))

    def integrated_gradients(self, batches: Sequence[tuple[list[int], Batch]], steps: int = 50) -> Scores:
        explainer = IntegratedGradients(self._logits)

        def attribute(text: torch.Tensor, baseline: torch.Tensor, more: tuple, classes: torch.Tensor) -> torch.Tensor:
            rows = len(text)
            return explainer.attribute(
                text,
                baseline,
                classes,
                more,
                n_steps=steps,
                method="gausslegendre",
                internal_batch_size=None if rows == 1 else rows,  # one text: all its steps at once
            ).sum(-1)

        return self._run(batches, attribute)

    def _logits(self, embeddings: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        return self.model(inputs_embeds=embeddings, attention_mask=mask, token_type_ids=types).logits

    def _collated(self, batches: Sequence[list[int]]) -> list[tuple[list[int], Batch]]:
        return [(rows, self.subject.clf.collate([self.subject.encoded[i] for i in rows])) for rows in batches]

    def _run(self, batches: Sequence[tuple[list[int], Batch]], attribute: Attribute) -> Scores:
        found: dict[int, np.ndarray] = {}
        for rows, batch in batches:
            more: tuple[Any, ...] = (batch.mask.long(), batch.types)
            with torch.no_grad():
                text = self.model.get_input_embeddings()(batch.ids)
                classes = self._logits(text, *more).argmax(-1)
            baseline = torch.where(batch.free[..., None], torch.zeros_like(text), text)
            scores = attribute(text.requires_grad_(), baseline, more, classes).detach() * batch.free
            for row, index in enumerate(rows):
                found[index] = scores[row, : len(self.subject.encoded[index].ids)].numpy()
        return [found[i] for i in sorted(found)]
