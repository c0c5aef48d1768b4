from __future__ import annotations

from typing import Annotated, Literal

import torch

from veridical.attribution import method
from veridical.attribution.copies import in_copies, some_rows
from veridical.attribution.input_x_gradient import aggregated
from veridical.core.ranges import Seed, at_least, between
from veridical.core.records import Batch
from veridical.core.seed import seed_of
from veridical.model.classifier import Classifier, leaf
from veridical.model.target import Target


@method("smoothgrad", needs=("gradient",), signed=False, passes="about 50 of each")
def smoothgrad(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    samples: Annotated[int, between(1, 100_000)] = 50,
    noise: Annotated[float, at_least(0)] = 0.15,
    aggregate: Literal["l2", "x_input"] = "l2",
    seed: Seed = 0,
) -> torch.Tensor:
    """Norm of the gradient averaged over noisy copies of the word vectors (Smilkov et al. 2017).

    The noise is Gaussian on free tokens; its standard deviation is `noise` times the range of the text's own
    word-vector entries. `aggregate=x_input` multiplies the mean gradient with the word vectors and sums.
    """
    with torch.no_grad():
        out = clf.forward(batch)
        target(out.logits)
    clean = out.embeddings
    sizes = torch.stack([_range(clean[row][batch.free[row]]) for row in range(len(clean))])
    draws = [torch.Generator().manual_seed(seed_of("smoothgrad", seed, e.example.id, e.ids)) for e in batch.encoded]

    total = torch.zeros_like(clean)
    for rows, width, which in in_copies(batch, samples):
        many = rows.repeat(len(which))  # [copies * rows]
        shake = torch.zeros(len(many), width, clean.shape[-1])
        for place, row in enumerate(many.tolist()):
            length = len(batch.encoded[row].ids)
            shake[place, :length] = torch.randn(length, clean.shape[-1], generator=draws[row])
        shake = shake.to(clean) * noise * sizes[many, None, None] * batch.free[many, :width, None]
        out = clf.forward(some_rows(batch, many, width), edit=lambda e, s=shake: leaf((e + s).detach()))
        (gradient,) = clf.gradient(target.rows(many)(out.logits), [out.embeddings])
        total[rows, :width] += gradient.unflatten(0, (len(which), len(rows))).sum(0)
    mean = total * batch.mask[..., None] / samples
    return mean.norm(dim=-1) if aggregate == "l2" else aggregated(mean * clean, "sum")


def _range(vectors: torch.Tensor) -> torch.Tensor:
    return vectors.max() - vectors.min()
