from __future__ import annotations

import torch

from veridical.attribution import method
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.decompose.adjoint import adjoint
from veridical.model.decompose.trace import trace
from veridical.model.target import Target


@method(
    "frozen_gradient", needs=("attention", "layers"), signed=True, differentiable=True, passes="1 forward, 1 backward"
)
def frozen_gradient(clf: Classifier, batch: Batch, target: Target) -> torch.Tensor:
    """Each token's share of the explained logit in the network whose attention, LayerNorm deviations and activation
    slopes are held as they are on this text: input x gradient there, at the output of the embedding block.

    With the share of all biases (`Adjoint.biases`; the logit less the sum over tokens) this is DecompX with biases as a
    source of their own by the rules of its paper, in one pass each way. Dropout has to be off.
    """
    seen = trace(clf, batch)
    target(seen.logits)
    clf.backwards += len(batch.ids)  # the pass is made by hand, and costs what any other does
    gradients = adjoint(seen, target.weights(seen.last))
    return torch.where(batch.mask, (gradients.block * seen.layers[0].x).sum(-1), 0.0)
