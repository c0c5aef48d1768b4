"""A second classifier with the same weights: the tensors are shared, the modules and the tokenizer are its own.

Methods hook modules, switch attention and turn gradients on while they explain; whoever runs the same modules in
another thread would see that, and a fast tokenizer may not be changed by one thread while another reads it. A twin sees
nothing of it and takes no memory: so questions are answered beside an explanation, not after it.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from veridical.model.classifier import Classifier


def twin(clf: Classifier) -> Classifier:
    """The same classifier for another thread, its weights frozen."""
    memo: dict[int, Any] = {}
    for parameter in clf.model.parameters():
        memo[id(parameter)] = torch.nn.Parameter(parameter.detach(), requires_grad=False)
    for buffer in clf.model.buffers():
        memo[id(buffer)] = buffer
    model = copy.deepcopy(clf.model, memo).eval()
    other = Classifier(model, copy.deepcopy(clf.tokenizer), name=clf.name, trained=clf.trained)
    other.limit = clf.limit
    return other
