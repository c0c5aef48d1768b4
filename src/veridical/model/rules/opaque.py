"""Operations that hide behind an autograd function of a model's own, where no rule reaches them.

Rules replace the operations that torch is called for. What a `torch.autograd.Function` computes is not seen, and its
own derivative would be taken in silence: it is computed openly where its formula is known, and refused elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _tanh_gelu(module: nn.Module, args: tuple, output: Tensor) -> Tensor:
    return F.gelu(args[0], approximate="tanh")


OPENLY = {"BloomGelu": _tanh_gelu}  # a module's class, and what it computes in operations that rules see


@contextmanager
def openly(model: nn.Module) -> Iterator[None]:
    """Inside, modules whose formula is known compute it in the open."""
    with ExitStack() as stack:
        for module in model.modules():
            formula = OPENLY.get(type(module).__name__)
            if formula is not None:
                stack.callback(module.register_forward_hook(formula).remove)
        yield


def hidden_operation(value: Tensor) -> str | None:
    """The name of an autograd function of somebody else's that `value` was computed through."""
    waiting: list[Any] = [value.grad_fn]
    passed: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in passed:
            continue
        passed.add(node)
        function = (
            getattr(node, "_forward_cls", None) if isinstance(node, torch.autograd.function.BackwardCFunction) else None
        )
        if function is not None and not function.__module__.startswith("veridical."):
            return function.__name__
        waiting.extend(following for following, _ in node.next_functions)
    return None
