"""What an audit's summary says of erased texts: how far methods come towards the best order, whether masks are familiar
to the model, and how foreign erased texts are where they are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from veridical.core.records import Operator


@dataclass(frozen=True)
class BestShare:
    """How far a method comes on the way from random orders to the best one found, by one metric."""

    corpus: str
    method: str
    metric: str
    share: float | None  # (method - random) / (best - random); None where the two do not differ
    n: int  # texts on which all three are defined
    best: str = "best"  # the reference


@dataclass(frozen=True)
class MaskTest:
    """Whether texts masked by one explanation at one ratio look to the model as those that it was trained on."""

    corpus: str
    method: str  # whose most important tokens are masked; random: a random order's
    ratio: float
    texts: int
    simes: float  # p over the texts: that none of them is out of distribution
    share: float  # of texts with p at most 0.05
    control: str  # the operator in the mask's place
    control_simes: float
    control_share: float
    reference: int  # texts that p are calibrated on: none is below 1 / (1 + their number)
    found: Literal["familiar", "foreign", "cannot tell"]
    p: tuple[float, ...] = ()  # of every text
    control_p: tuple[float, ...] = ()


@dataclass(frozen=True)
class Familiarity:
    """What erased texts are to the model."""

    ratio: float  # up to which it was trained on masks; 0: never
    by: Operator
    texts: int
    null_confidence: float  # in its likeliest class, of a text without any token
    null_majority: float  # share of texts without tokens that are given one and the same class
    agreement: Mapping[str, float | None]  # "delete ~ mask" -> share of half-erased texts given one class by both
    sentence: str
