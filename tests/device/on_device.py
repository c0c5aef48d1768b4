"""What the suites of this folder share: the device, and the same tiny model on it and on the CPU."""

from __future__ import annotations

import functools
import os

import numpy as np
import pytest

import pretend
from tiny import PAIRS, TEXTS, tiny
from veridical.core.records import Encoded, Example
from veridical.model.classifier import Classifier

if reason := pretend.why_not():
    pytest.skip(reason, allow_module_level=True)
DEVICE = pretend.register()
for wish in ("VERIDICAL_DEVICE", "ACCELERATE_USE_CPU"):  # the other tests' for a CPU
    os.environ.pop(wish, None)

EXAMPLES = [Example(f"t{i}", text, label=i % 3) for i, text in enumerate(TEXTS)]
PAIRED = [Example(f"p{i}", text, context=context, label=i % 3) for i, (text, context) in enumerate(PAIRS)]


@functools.cache
def both(family: str, pair: bool = False) -> tuple[Classifier, Classifier]:
    """On the CPU and on the device."""
    (first, tokenizer), (second, _) = tiny(family, pair=pair), tiny(family, pair=pair)
    name = f"tiny-{family}"
    return Classifier(first, tokenizer, name=name), Classifier(second.to(DEVICE), tokenizer, name=name)


@functools.cache
def texts(family: str, pair: bool = False) -> list[Encoded]:
    return both(family, pair)[0].encode(PAIRED if pair else EXAMPLES)


def close(here: np.ndarray, there: np.ndarray) -> None:
    """Equal but for the order of sums, which a kernel may choose by how numbers lie in memory."""
    scale = max(1.0, float(np.abs(here).max()))
    np.testing.assert_allclose(there / scale, here / scale, atol=1e-5)
