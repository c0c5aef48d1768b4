"""A pretend accelerator: tensors that live on the CPU and say that they do not.

What mixes one with a CPU tensor raises, as on CUDA; `.numpy()` raises; float64 raises, as on Apple's GPUs; and with a
bound on its memory, what would make a larger tensor raises what an accelerator raises then. Its kernels are the CPU's,
so results are the CPU's too: a difference is a mistake of ours.

It rests on a private interface of torch (2.13), and registering it changes the process: `torch.accelerator` says from
then on that there is one. So only processes of its own import this module (tests/device/test_pretend.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as trees
from torch.utils import backend_registration

NAME = "pretend"
KEY = "PrivateUse1"
# What is not to be had on it, why, and what stands in its place; tests/device says where it matters.
WITHOUT = {
    "cuDNN": "its LSTM is NVIDIA's own; the pretend device takes torch's cell, as other accelerators do, whose two "
    "kernels a CPU has not: they are written below",
    "fused attention": "scaled_dot_product_attention is its plain formula, as on a device without a kernel for it",
    "inference tensors": "a wrapper has a version counter, which they must not have; inside `torch.inference_mode` "
    "results are plain tensors without a gradient",
    "own random numbers": "dropout is drawn by the CPU's generator, so that trainings can be compared; a real device "
    "draws by itself, and a training with dropout differs there from one on a CPU",
    "asynchrony": "a pass ends before the next begins; mistakes of order and of timing cannot show",
    "workers": "the processes of a grid do not register it; what they compute is tried in this process",
    "accelerate": "it knows real devices only, so that VeridicalTrainer is told of this one; pinned memory and several "
    "processes are not to be had on it",
    "other precision": "kernels are the CPU's, in float32; how far those of a real device are off cannot be seen",
}
MIXING = {"aten::copy_", "aten::_to_copy"}  # what may see tensors of two devices
_limit: list[int] = []  # bytes that the largest tensor may take; the last one holds


class Pretended(torch.Tensor):
    """A tensor on the device; `raw` holds its numbers."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> Pretended:
        held = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            raw.shape,
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=torch.device(NAME, 0),
        )
        held.raw = raw
        return held

    def tolist(self) -> Any:
        return self.raw.detach().tolist()

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.raw.untyped_storage()

    def storage(self) -> torch.TypedStorage:
        return self.raw.storage()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy. Use Tensor.cpu() first.")

    __array__ = numpy

    def __repr__(self, **_: Any) -> str:
        return f"Pretended({self.raw!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        return dispatch(func, *args, **(kwargs or {}))


def dispatch(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operation on the numbers behind its arguments."""
    name = op._schema.name
    wanted = kwargs.get("device")
    given = [leaf for leaf in trees.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    here = [tensor for tensor in given if isinstance(tensor, Pretended)]
    if here and name not in MIXING:
        strangers = [tensor for tensor in given if not isinstance(tensor, Pretended) and tensor.ndim > 0]
        if strangers:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {NAME}:0 and cpu! "
                f"({name})"
            )
    to_device = bool(here) if wanted is None else torch.device(wanted).type == NAME
    if wanted is not None:
        kwargs["device"] = torch.device("cpu")
    kernel = KERNELS.get(name, op)
    with torch.inference_mode(False), torch.no_grad():  # a wrapper has a version counter, which inference forbids
        result = kernel(*_raw(args), **_raw(kwargs))
        if _in_place(op):
            if isinstance(args[0], Pretended) and args[0].shape != args[0].raw.shape:  # squeeze_ and the like
                with torch._C._DisableTorchDispatch(), torch._C._AutoDispatchBelowAutograd():  # type: ignore[attr-defined]
                    op(*args, **kwargs)
            return args[0] if op._schema.returns else None
        return trees.tree_map_only(torch.Tensor, _wrapped, result) if to_device else result


def _raw(value: Any) -> Any:
    return trees.tree_map_only(Pretended, lambda tensor: tensor.raw, value)


def _wrapped(raw: torch.Tensor) -> torch.Tensor:
    if isinstance(raw, Pretended):
        return raw
    if raw.dtype == torch.float64:
        raise TypeError(f"Cannot convert a {NAME} Tensor to float64 dtype as the framework doesn't support float64.")
    size = raw.numel() * raw.element_size()
    if _limit and size > _limit[-1]:
        raise torch.OutOfMemoryError(f"{NAME} out of memory. Tried to allocate {size} bytes of {_limit[-1]}.")
    return Pretended(raw.detach() if raw.requires_grad else raw)


def _in_place(op: Any) -> bool:
    first = op._schema.arguments[:1]
    return bool(first) and first[0].alias_info is not None and first[0].alias_info.is_write


# -- kernels that a CPU has not -----------------------------------------------------------------------------


def _cell(
    of_input: torch.Tensor,
    of_hidden: torch.Tensor,
    cell: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A step of an LSTM: hidden state, cell, and the gates for the way back."""
    gates = of_input + of_hidden
    for bias in (input_bias, hidden_bias):
        gates = gates if bias is None else gates + bias
    enter, forget, new, leave = gates.chunk(4, 1)
    enter, forget, new, leave = enter.sigmoid(), forget.sigmoid(), new.tanh(), leave.sigmoid()
    after = forget * cell + enter * new
    return leave * after.tanh(), after, torch.cat([enter, forget, new, leave], 1)


def _cell_back(
    of_hidden: torch.Tensor | None,
    of_cell: torch.Tensor | None,
    before: torch.Tensor,
    after: torch.Tensor,
    gates: torch.Tensor,
    has_bias: bool,
) -> tuple[Any, ...]:
    """The gradients of `_cell` by its gates, its cell before and its biases."""
    enter, forget, new, leave = gates.chunk(4, 1)
    of_hidden = torch.zeros_like(after) if of_hidden is None else of_hidden
    flat = after.tanh()
    through = of_hidden * leave * (1 - flat * flat) + (0 if of_cell is None else of_cell)
    by_gate = torch.cat(
        [
            through * new * enter * (1 - enter),
            through * before * forget * (1 - forget),
            through * enter * (1 - new * new),
            of_hidden * flat * leave * (1 - leave),
        ],
        1,
    )
    return by_gate, through * forget, by_gate.sum(0) if has_bias else None


def _copied(source: torch.Tensor, into: torch.Tensor, *_: Any) -> torch.Tensor:
    with torch.inference_mode(False), torch.no_grad():
        _raw(into).copy_(_raw(source))
    return into


KERNELS: dict[str, Callable[..., Any]] = {
    "aten::_thnn_fused_lstm_cell": _cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": _cell_back,
    "aten::_local_scalar_dense": lambda tensor: tensor.item(),
}


# -- the device ---------------------------------------------------------------------------------------------


@contextmanager
def memory(limit: int) -> Iterator[None]:
    """No tensor of more than so many bytes fits inside."""
    _limit.append(limit)
    try:
        yield
    finally:
        _limit.pop()


class Backend(getattr(backend_registration, "_DummyBackendModule", object)):  # type: ignore[misc]
    """What `torch.pretend` is: its random numbers are the CPU's."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def get_rng_state(self, *_: Any) -> torch.Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, *_: Any) -> None:
        torch.set_rng_state(state)


def why_not() -> str:
    """Why the device cannot be had here; nothing if it can."""
    if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
        return f"torch {torch.__version__} cannot register a device in Python (2.13 can)"
    if torch.accelerator.is_available() and not _held:
        return f"there is a real accelerator ({torch.accelerator.current_accelerator()}), and torch allows one"
    return ""


def register() -> torch.device:
    """Make it a device of this process, once."""
    if not _held:
        backend_registration._setup_privateuseone_for_python_backend(NAME, Backend())  # type: ignore[attr-defined]
        fallback = torch.library.Library("_", "IMPL")
        fallback.fallback(dispatch, KEY)
        # Where torch makes a tensor of Python's numbers (an index is one too) it looks kernels up by name; a fallback
        # has none; the second is asked for inside dispatch modes, in which passes are counted.
        by_name = torch.library.Library("aten", "IMPL")
        by_name.impl("_copy_from", _copied, KEY)
        by_name.impl("empty_strided", functools.partial(dispatch, torch.ops.aten.empty_strided.default), KEY)
        _held.extend((fallback, by_name))
    return torch.device(NAME, 0)


_held: list[Any] = []  # kernels go with their library
