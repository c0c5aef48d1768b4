"""In which order examples are learnt from, and at what rate: functions of the seed and the step alone.

Nothing here has a state, so a resumed run needs nothing but its step to go on as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from veridical.core.seed import generator
from veridical.training.config import TrainConfig

POOL = 32  # batches whose examples are sorted by length together


def order(lengths: Sequence[int], batch: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Batches of examples for one epoch: shuffled, of similar length within pools, in shuffled order.

    A pool is a random sample of the epoch, so sorting inside it saves most of the padding and leaves the
    composition of batches random.
    """
    random = generator("order", seed, epoch)
    shuffled = random.permutation(len(lengths)).tolist()
    batches: list[list[int]] = []
    for start in range(0, len(shuffled), POOL * batch):
        pool = sorted(shuffled[start : start + POOL * batch], key=lengths.__getitem__)
        batches += [pool[i : i + batch] for i in range(0, len(pool), batch)]
    return [batches[i] for i in random.permutation(len(batches))]


def rate(step: int, steps: int, config: TrainConfig) -> float:
    """The factor on the learning rates at a step (from 0): linear warm-up, then constant or linearly to 0."""
    warm = int(config.warmup * steps)
    if step < warm:
        return (step + 1) / (warm + 1)
    return (steps - step) / (steps - warm) if config.schedule == "linear" else 1.0


def make_optimizer(model: Any, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW, or Adam with AMSGrad and L2 decay; the encoder and what stands on it in groups of their own."""
    encoder = {id(parameter) for parameter in model.base_model.parameters()}  # the BiLSTM: all of it
    groups: dict[tuple[str, bool], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            part = "encoder" if id(parameter) in encoder else "head"
            decayed = not any(word in name.lower() for word in config.no_decay)
            groups.setdefault((part, decayed), []).append(parameter)
    rates = {"encoder": config.lr, "head": config.head_lr}
    settings = [
        {
            "params": parameters,
            "part": part,
            "rate": rates[part],
            "lr": rates[part],
            "weight_decay": config.weight_decay if decayed else 0.0,
        }
        for (part, decayed), parameters in groups.items()
    ]
    # The fused kernels are the same arithmetic in one pass over memory.
    if config.optimizer == "amsgrad":
        return torch.optim.Adam(settings, betas=config.betas, amsgrad=True, fused=True)
    return torch.optim.AdamW(settings, betas=config.betas, fused=True)


def set_rate(optimizer: torch.optim.Optimizer, factor: float) -> dict[str, float]:
    """Give every group its rate times the factor; returns the rates by part of the model."""
    for group in optimizer.param_groups:
        group["lr"] = group["rate"] * factor
    return {group["part"]: group["lr"] for group in optimizer.param_groups}
