"""A forward pass in which chosen operations get a backward rule of their own, whatever the architecture.

Inside `with Rules(table):` every torch function is looked up by name: one in the table is replaced, one that is
linear runs as it is, and any other through which the input's influence passes is refused. So a method built on
this answers exactly by its rules or not at all, and needs no line per model family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from veridical.core.errors import InputError
from veridical.core.records import Batch, Output
from veridical.model.classifier import Classifier, Edit
from veridical.model.rules.opaque import hidden_operation, openly

# Affine in the tensor that carries the input, or mere moving about of entries.
LINEAR = frozenset(
    """
    linear addmm add sub rsub neg sum mean cumsum dropout embedding masked_fill where
    view reshape flatten unflatten transpose permute t mT contiguous unsqueeze squeeze expand expand_as repeat
    repeat_interleave movedim swapaxes cat concat stack split chunk unbind narrow select index_select gather
    getitem roll flip pad to type type_as float double clone detach alias as_strided requires_grad nan_to_num
    """.split()
)


class Rules(TorchFunctionMode):
    """`table` maps an operation's name to a function of the same arguments that is called in its place."""

    def __init__(self, table: Mapping[str, Callable[..., Any]], who: str):
        super().__init__()
        self.table, self.who = table, who

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        name = operation(getattr(func, "__name__", str(func)))
        if name in self.table and _carries((args, kwargs)):
            if _in_place(func):  # of a copy, because rules keep their arguments; then written where it belongs
                return args[0].copy_(self.table[name](args[0].clone(), *args[1:], **kwargs))
            return self.table[name](*args, **kwargs)
        result = func(*args, **kwargs)
        if name not in LINEAR and name != "get" and _carries(result) and _carries((args, kwargs)):
            raise InputError(_no_rule(self.who, name))
        return result


def forward_by(rules: Rules, clf: Classifier, batch: Batch, edit: Edit) -> Output:
    """A pass whose operations are those of the rules; one that hides from them is refused."""
    with openly(clf.model), rules:
        out = clf.forward(batch, edit=edit)
    hidden = hidden_operation(out.logits)
    if hidden is not None:
        raise InputError(_no_rule(rules.who, hidden))
    return out


def _no_rule(who: str, operation: str) -> str:
    return (
        f"{who} has no rule for the operation {operation!r} in this model; use integrated_gradients, which needs none."
    )


def operation(name: str) -> str:
    """`__rmul__`, `mul_` and `mul` are one operation; reflected subtraction and division keep their name."""
    name = name.strip("_")
    return name[1:] if name in ("radd", "rmul", "rmatmul", "iadd", "imul", "isub", "itruediv") else name


def _in_place(func: Any) -> bool:
    """`x.mul_(y)` changes x; `x *= y` takes what it is given back."""
    name = getattr(func, "__name__", "")
    return name.endswith("_") and not name.startswith("_")


def _carries(value: Any) -> bool:
    """Whether the input's influence reaches a tensor among these."""
    if isinstance(value, torch.Tensor):
        return value.requires_grad
    if isinstance(value, (tuple, list)):
        return any(_carries(part) for part in value)
    if isinstance(value, dict):
        return any(_carries(part) for part in value.values())
    return False
