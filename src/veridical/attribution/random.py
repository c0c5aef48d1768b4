from __future__ import annotations

import torch

from veridical.attribution import method
from veridical.core.ranges import Seed
from veridical.core.records import Batch
from veridical.core.seed import generator
from veridical.model.classifier import Classifier
from veridical.model.target import Target


@method("random", signed=False, of_target=False)
def random(clf: Classifier, batch: Batch, target: Target, *, seed: Seed = 0) -> torch.Tensor:
    """Independent uniform draws, a seed per example: the floor every method has to beat."""
    scores = torch.zeros_like(batch.ids, dtype=torch.float32)
    for row, encoded in enumerate(batch.encoded):
        # From the text, not the place in the batch: an example keeps its draws wherever it stands.
        draws = generator("random", seed, encoded.example.id, encoded.ids).random(len(encoded.ids))
        scores[row, : len(draws)] = torch.from_numpy(draws)
    return scores
