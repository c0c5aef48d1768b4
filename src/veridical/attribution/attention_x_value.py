from __future__ import annotations

import torch

from veridical.attribution import method
from veridical.core.records import Batch
from veridical.model.classifier import Classifier
from veridical.model.decompose.trace import trace, values
from veridical.model.pooling import read_row
from veridical.model.target import Target


@method("attention_x_value", needs=("attention", "layers"), signed=False, differentiable=True, of_target=False)
def attention_x_value(clf: Classifier, batch: Batch, target: Target) -> torch.Tensor:
    """Attention of the last layer from the token the head reads, times the length of the value vector it takes from
    each token, summed over heads.

    The same for every class.
    """
    seen = trace(clf, batch)
    target(seen.logits)
    last = seen.layers[-1]
    lengths = values(last).norm(dim=-1)  # [B, H, T]
    return read_row(clf, (last.attention * lengths[:, :, None]).sum(1), batch)
