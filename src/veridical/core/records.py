"""The records that flow through Veridical: frozen, no logic.

Shapes: B batch, T tokens, L layers, H heads, D width, C classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    import torch

Span = tuple[int, int]
LATER = {"left out at its default": True}  # marks a field that a record was given later (`store.plain`)
Operator = Literal["delete", "mask", "attention", "zero_id_attended"]  # how tokens are erased (model/erase.py)
Level = Literal["token", "word"]  # what is erased at a time


@dataclass(frozen=True, slots=True)
class Example:
    """One text to classify. `context` is read by the model and never explained or erased."""

    id: str
    text: str
    label: int | tuple[int, ...] | None = None  # multi-label: the indices that hold
    context: str | None = None
    rationale: tuple[Span, ...] = ()  # character spans in `text`
    document: str | None = field(
        default=None, metadata=LATER
    )  # that the text comes from, where several texts come from one


@dataclass(frozen=True, slots=True)
class Dataset:
    """Labelled examples in named splits (train, dev, test; a source may lack some)."""

    name: str
    labels: tuple[str, ...]
    splits: Mapping[str, tuple[Example, ...]]
    multilabel: bool = False
    about: str = ""  # where it comes from, licence, what was dropped: shown by `veridical data show`


# What people hold in Python and have texts in: which forms that are, data/objects.py says. Frames and tables of other
# libraries are iterables to a type checker.
Given = str | Example | Dataset | Mapping[str, Any] | Iterable[Any]


@dataclass(frozen=True, slots=True)
class Encoded:
    """One example (or one window of it) under one tokenizer."""

    example: Example
    ids: tuple[int, ...]  # T
    types: tuple[int, ...]  # T, segment ids; all 0 where the model has none
    spans: tuple[Span, ...]  # T, characters in example.text; (0, 0) off the text
    words: tuple[int, ...]  # T, index of the whitespace-separated word; -1 off the text
    free: tuple[bool, ...]  # T, may be explained and erased
    cut: int = 0  # tokens of the text that did not fit and are not in `ids`
    start: int = 0  # a window: how many tokens of the text come before it


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded tensors, right-padded, and the encodings they came from."""

    encoded: tuple[Encoded, ...]
    ids: torch.Tensor  # [B, T] int64
    types: torch.Tensor  # [B, T] int64
    mask: torch.Tensor  # [B, T] bool, attended
    free: torch.Tensor  # [B, T] bool, may be explained and erased


@dataclass(frozen=True, slots=True)
class Output:
    """What one forward pass returns. Class logits: a one-logit head z is shown as (-z, z)."""

    logits: torch.Tensor  # [B, C]
    embeddings: torch.Tensor  # [B, T, D], word embeddings after `edit`
    attentions: tuple[torch.Tensor, ...] = ()  # L x [B, H, T, T]
    hidden: tuple[torch.Tensor, ...] = ()  # L+1 x [B, T, D]


@dataclass(frozen=True, slots=True)
class Soft:
    """How a variant is erased in part: each position keeps a share of itself."""

    keep: tuple[float, ...]  # T, in [0, 1]; 1 on special tokens and the context
    seed: int = 0  # of the draws; equal seeds draw alike whatever `keep` is
    mode: str = "bernoulli"  # bernoulli, gaussian, gaussian_sd, attention (model/soft.py)
    where: str = "word"  # word: the word embeddings; block: the output of the embedding block
    variance: float = 0.5  # of the Gaussian modes


@dataclass(frozen=True, slots=True)
class Variant:
    """A question to the model: an altered input. Hashable, so that equal questions are asked once."""

    ids: tuple[int, ...]
    types: tuple[int, ...]
    attend: tuple[bool, ...] | None = None  # None: everything
    soft: Soft | None = None  # None: erased wholly or not at all


@dataclass(frozen=True, slots=True)
class Answers:
    """The model's reply to a list of variants, in their order."""

    logits: np.ndarray  # [n, C]
    probabilities: np.ndarray  # [n, C]


@dataclass(frozen=True, slots=True)
class Explained:
    """What an asking method or a metric sees of one example."""

    encoded: Encoded
    target: int
    probabilities: np.ndarray  # [C], on the full text
    logits: np.ndarray  # [C]
    scores: np.ndarray | None = None  # [T]
    mask_id: int | None = None  # the tokenizer's [MASK]
    seed: int = 0
    contrast: int | None = None  # the class that the target is explained against
    end_id: int | None = None  # of a decoder: the pad token, by which its head finds the end of a text
    masks: float = 0.0  # the largest share of a text that the model was trained on masked


@dataclass(frozen=True, slots=True)
class Score:
    """What a metric says of one explanation of one example."""

    value: float | None  # None: undefined here; counted and shown, never 0
    curve: tuple[float | None, ...] = ()  # the value per ratio, where the metric has ratios
    error: float | None = None  # standard error of the value, where the metric samples
    room: float | None = None  # what the value was divided by (D), where the metric samples


@dataclass(frozen=True, slots=True)
class Cell:
    """One score with what it is a score of: a row of `scores.parquet`."""

    corpus: str
    example: str
    method: str  # its spec
    metric: str  # its spec
    score: Score
    control: str = ""  # "permutation" or "gaussian": of a random explanation in the method's place


@dataclass(frozen=True, slots=True)
class Cost:
    """What one explanation took: wall seconds (its share by tokens) and sequences through the model.

    Sequences may be short, and work beside the model is none: `explanations/passes.py` counts both.
    """

    seconds: float = 0.0
    forward: float = 0.0
    backward: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Scores of one example's tokens for one class; 0 where a token is not free."""

    encoded: Encoded
    target: int
    scores: np.ndarray  # [T] float32
    probabilities: np.ndarray  # [C], of the whole text
    method: str  # its spec, options that are not at their default included
    options: Mapping[str, object] = field(default_factory=dict)  # all of them
    cost: Cost = Cost()
    sampling_error: float | None = None  # of a method that draws, as a share of the scores' spread over the tokens
    contrast: int | None = None  # the class that the target is explained against: the difference of their logits
    gap: float | None = None  # what the scores miss of the change of the logit, as a share of it, where that is known

    @property
    def example(self) -> Example:
        """What is explained."""
        return self.encoded.example
