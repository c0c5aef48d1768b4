from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from veridical.attribution import Sampled, method
from veridical.attribution.copies import in_copies, some_rows
from veridical.attribution.input_x_gradient import aggregated
from veridical.attribution.sampling import BLOCKS, ENOUGH, Enough, jackknife, looks, small
from veridical.core.ranges import Seed, at_least, between
from veridical.core.records import Batch
from veridical.core.seed import seed_of
from veridical.model.classifier import Classifier, leaf
from veridical.model.target import Target

Score = Literal["l2", "x_input"]


@method("smoothgrad", needs=("gradient",), signed=False, version=2, passes="up to 50 of each")
def smoothgrad(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    samples: Annotated[int, between(1, 100_000)] = 50,
    noise: Annotated[float, at_least(0)] = 0.15,
    aggregate: Score = "l2",
    seed: Seed = 0,
    error: Enough = ENOUGH,
) -> Sampled:
    """Norm of the gradient averaged over noisy copies of the word vectors (Smilkov et al. 2017).

    The noise is Gaussian on free tokens; its standard deviation is `noise` times the range of the text's own
    word-vector entries. `aggregate=x_input` multiplies the mean gradient with the word vectors and sums. It draws until
    the sampling error is `error` of the scores' spread, at most `samples`; with 0, all of them.
    """
    with torch.no_grad():
        out = clf.forward(batch)
        target(out.logits)
    clean, every = out.embeddings, range(len(batch.ids))
    sizes = torch.stack([_range(clean[row][batch.free[row]]) for row in every])
    draws = [torch.Generator().manual_seed(seed_of("smoothgrad", seed, e.example.id, e.ids)) for e in batch.encoded]
    noisy = _Noisy(clf, batch, target, noise, sizes, draws)
    total, blocks = torch.zeros_like(clean), clean.new_zeros(min(samples, BLOCKS), *clean.shape)
    drawn, waiting, start = clean.new_zeros(len(clean), 1, 1), list(every), 0
    errors: list[float | None] = [None for _ in every]
    for count in looks(samples, error):
        for rows, which, gradients in noisy.gradients(count - start, waiting):
            width = gradients.shape[2]
            total[rows, :width] += gradients.sum(0)
            for number, gradient in zip(which, gradients, strict=True):
                blocks[(start + number) % len(blocks), rows, :width] += gradient
        for row in waiting:
            drawn[row] = count
            free = batch.free[row]
            errors[row] = _error(total[row, free], blocks[:, row, free], count, clean[row, free], aggregate)
        waiting, start = [row for row in waiting if not small(errors[row], error)], count
    return Sampled(_scores(total * batch.mask[..., None] / drawn, clean, aggregate), errors)


@dataclass(frozen=True)
class _Noisy:
    """The texts of a batch under noise, each with draws of its own."""

    clf: Classifier
    batch: Batch
    target: Target
    noise: float
    sizes: torch.Tensor  # [B]
    draws: Sequence[torch.Generator]

    def gradients(self, count: int, some: Sequence[int]) -> Iterator[tuple[torch.Tensor, range, torch.Tensor]]:
        """Rows of the batch, which of the next `count` draws, and the gradients there. [draws, rows, width, D]"""
        depth = self.clf.model.get_input_embeddings().weight.shape[1]
        for rows, width, which in in_copies(self.batch, count, some):
            many = rows.repeat(len(which))  # [draws * rows]
            shake = torch.zeros(len(many), width, depth)
            for place, row in enumerate(many.tolist()):
                length = len(self.batch.encoded[row].ids)
                shake[place, :length] = torch.randn(length, depth, generator=self.draws[row])
            shake = shake.to(self.sizes) * self.noise * self.sizes[many, None, None]
            shake = shake * self.batch.free[many, :width, None]
            edit = lambda e, s=shake: leaf((e + s).detach())  # noqa: E731
            out = self.clf.forward(some_rows(self.batch, many, width), edit=edit)
            (gradient,) = self.clf.gradient(self.target.rows(many)(out.logits), [out.embeddings])
            yield rows, which, gradient.unflatten(0, (len(which), len(rows)))


def _scores(mean: torch.Tensor, clean: torch.Tensor, aggregate: Score) -> torch.Tensor:
    """[..., T, D] -> [..., T]"""
    return mean.norm(dim=-1) if aggregate == "l2" else aggregated(mean * clean, "sum")


def _error(
    total: torch.Tensor, blocks: torch.Tensor, count: int, clean: torch.Tensor, aggregate: Score
) -> float | None:
    """Of one text's free tokens: total [n, D], blocks [blocks, n, D]."""
    blocks = blocks[:count]
    held = torch.tensor([len(range(number, count, len(blocks))) for number in range(len(blocks))]).to(total)
    left = count - held[:, None, None]
    without = (total - blocks) / left.clamp(min=1)
    scores = _scores(total / count, clean, aggregate), _scores(without, clean, aggregate)
    return jackknife(*(part.cpu().double().numpy() for part in scores[::-1]))  # Apple's GPUs have no doubles


def _range(vectors: torch.Tensor) -> torch.Tensor:
    return vectors.max() - vectors.min()
