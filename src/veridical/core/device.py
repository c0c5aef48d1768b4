"""Where models run, and how many tokens they are given at once: facts of a process, not of a result.

So no record of a result holds them. They are said by `--device` and `--batch-tokens`, by the arguments `device` and
`budget`, or by two environment variables, which is how worker processes learn of them:

    VERIDICAL_DEVICE        cpu, cuda, cuda:1, mps, ..., or auto: the accelerator that there is, else the CPU
    VERIDICAL_BATCH_TOKENS  padded tokens in one pass of a model
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from veridical.core.errors import InputError

if TYPE_CHECKING:
    import torch

DEVICE, BATCH_TOKENS = "VERIDICAL_DEVICE", "VERIDICAL_BATCH_TOKENS"
AUTO = "auto"
KINDS = ("cuda", "mps", "xpu", "npu", "hpu", "mtia", "xla")


@contextmanager
def computing(device: str | torch.device | None = None, batch_tokens: int | None = None) -> Iterator[None]:
    """Inside, models are loaded onto this device and given so many tokens at once, in this process and in the workers
    that it starts; what is None stays as it is."""
    said: dict[str, str] = {}
    if device is not None:
        said[DEVICE] = insist_on_device(device)
    if batch_tokens is not None:
        if batch_tokens < 1:
            raise InputError(f"budget is {batch_tokens}; it must be a whole number of tokens, 1 or more.")
        said[BATCH_TOKENS] = str(batch_tokens)
    before = {name: os.environ.get(name) for name in said}
    os.environ.update(said)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def environment() -> dict[str, str]:
    """What a process has to have in its environment to compute alike."""
    return {name: os.environ[name] for name in (DEVICE, BATCH_TOKENS) if os.environ.get(name)}


def said_device() -> torch.device | None:
    """The device that was asked for; none if nobody did."""
    name = os.environ.get(DEVICE)
    return device_of(name) if name else None


def said_batch_tokens() -> int | None:
    """The number of tokens that was asked for; none if nobody did."""
    text = os.environ.get(BATCH_TOKENS)
    if not text:
        return None
    if not re.fullmatch("[1-9][0-9]{0,17}", text):
        raise InputError(f"{BATCH_TOKENS} is {text!r}; it must be a whole number of tokens, 1 or more.")
    return int(text)


def device_of(name: str | torch.device = AUTO) -> torch.device:
    """The device of this name, if it is here."""
    import torch

    name = insist_on_device(name)
    if name != AUTO:
        return torch.device(name)
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator or torch.device("cpu")


@lru_cache
def has_float64(device: torch.device) -> bool:
    """Apple's GPUs have none."""
    import torch

    try:
        torch.empty(0, dtype=torch.float64, device=device)
    except TypeError:
        return False
    return True


def insist_on_device(name: str | torch.device) -> str:
    """Refuse a device that is unknown or not here. A name that torch could not know is refused without asking it."""
    name = str(name)
    if name in ("cpu", AUTO):
        return name
    kind, _, index = name.partition(":")
    spelled = re.fullmatch(r"[a-z]+(:(0|[1-9][0-9]{0,2}))?", name) is not None
    if spelled and (kind in KINDS or "torch" in sys.modules):  # else no module can have told torch of another kind
        import torch

        here = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        count = torch.accelerator.device_count() if here is not None else 0
        if here is not None and kind == here.type and int(index or 0) < count:
            return name
        if kind in KINDS or (here is not None and kind == here.type):
            known = [] if here is None else [here.type, *(f"{here.type}:{i}" for i in range(count))]
            there = ", ".join(["cpu", *known, AUTO])
            raise InputError(f"There is no device {name!r} here that torch could use; there are {there}.")
    raise InputError(f"The device is {name!r}; allowed: cpu, cuda, cuda:1 (the second), mps, auto.")
