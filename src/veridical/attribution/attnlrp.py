from __future__ import annotations

from typing import Literal

import torch

from veridical.attribution import method
from veridical.attribution.input_x_gradient import Aggregate, aggregated
from veridical.core.records import Batch
from veridical.model.classifier import Classifier, leaf
from veridical.model.rules.lrp import ATTNLRP, CONSERVATIVE, Relevance
from veridical.model.rules.rules import forward_by
from veridical.model.target import Target


@method("attnlrp", needs=("attention", "gradient"), signed=True)
def attnlrp(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    attention: Literal["moves", "held"] = "moves",
    aggregate: Aggregate = "sum",
) -> torch.Tensor:
    """AttnLRP (Achtibat et al. 2024): word vector x gradient, with LayerNorm deviations held, activations passed back
    by a(x) / x, softmax differentiated, and half of every product of two moving factors to each.

    Relevance is kept but for what biases, position vectors and the constant part of each softmax take, so the scores
    do not sum to the logit. `attention=held` holds attention and gates too (conservative propagation, Ali et al. 2022):
    `frozen_gradient` taken one step earlier, at the word vectors.
    """
    rules = Relevance(ATTNLRP if attention == "moves" else CONSERVATIVE, "attnlrp")
    out = forward_by(rules, clf, batch, leaf)
    (gradient,) = clf.gradient(target(out.logits), [out.embeddings])
    return aggregated(out.embeddings.detach() * gradient * batch.mask[..., None], aggregate)
