from __future__ import annotations

import warnings
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import torch
from scipy.interpolate import PchipInterpolator

from veridical.attribution import Summed, method
from veridical.attribution.copies import in_copies, some_rows
from veridical.attribution.input_x_gradient import Aggregate, aggregated
from veridical.attribution.quadrature import LEVELS, nested, nodes
from veridical.core.errors import Caution, InputError
from veridical.core.ranges import between
from veridical.core.records import Batch
from veridical.model.classifier import Classifier, leaf
from veridical.model.target import Target

Rule = Literal["gauss", "right", "mid", "left", "trapezoid", "adaptive", "nested", "released"]
Baseline = Literal["zero", "mask", "pad", "token"]
MOST_STEPS = 5000  # the nodes of Gauss come from a matrix of so many rows and columns: 200 MB
TOLERANCES = {"adaptive": 0.05, "nested": 0.001}
LARGE_GAP = 0.1  # of the change of the logit
STRETCHES = (0.0, 0.35, 1.0)  # of the path, for the nested rule
ROUNDED = 1e-4  # scores are rounded so before they decide how many nodes a text gets: a batch moves them by 1e-6


@method("integrated_gradients", needs=("gradient",), signed=True, complete=True, passes="about 50 of each")
def integrated_gradients(
    clf: Classifier,
    batch: Batch,
    target: Target,
    *,
    steps: Annotated[int, between(1, MOST_STEPS)] = 50,
    rule: Rule = "gauss",
    baseline: Baseline = "zero",
    aggregate: Aggregate = "sum",
    tolerance: Annotated[float, between(0, 1)] | None = None,
    token: str = "",
) -> Summed:
    """Gradient averaged along the straight path from a baseline to the word vectors, times their difference
    (Sundararajan et al. 2017; Recursive ROAR eq. 2; REGEX eq. 5).

    Free tokens move; special tokens, context and positions stay. `rule=nested` chooses the nodes per text. The path
    has two stretches, of which the first, near the baseline, is where gradients turn most; each has 7, 15, 31 or 63
    nodes of Gauss and Patterson, up to the first number that is not below `steps` / 2. It stops where the scores are
    off by `tolerance` (0.001) of their total size, told from how far they moved at the last step. `rule=adaptive`
    refines the path where the gradients explain the change of the logit worst, until what they miss is `tolerance`
    (0.05) of the scores' total size, and then makes the scores sum to the change exactly; it is for paths on which the
    gradient jumps. `rule=released` is what the code released with Recursive ROAR computes: `right`, with every gradient
    times its place on the path once more. It is here to compare with; its scores do not sum to the change.

    `baseline=token` is the word vector of a token, by default of a line break or else of the token that ends texts;
    `token` names another. It is for models with RMS norms, of which zero vectors are a singular point.
    """
    line = _Line(clf, batch, target, _baseline(clf, baseline, token), aggregate)
    every = torch.arange(len(batch.ids), device=batch.ids.device)
    tolerance = TOLERANCES.get(rule, 0.0) if tolerance is None else tolerance
    with torch.no_grad():  # the clean pass fixes the explained class before anything is altered
        whole = target(clf.forward(batch).logits)
    if rule == "adaptive":
        return Summed(aggregated(_adaptive(line.products, every, steps, tolerance), aggregate), None)
    total = _nested(line, steps, tolerance) if rule == "nested" else line.summed(*nodes(rule, steps))
    if aggregate != "sum" or rule == "released":
        return Summed(aggregated(total, aggregate), None)
    with torch.no_grad():
        null = target(clf.forward(batch, edit=lambda e: line.at(0.0, e, every)).logits)
    return Summed(aggregated(total, aggregate), _gaps(total.sum((1, 2)), whole - null, baseline, steps))


@dataclass(frozen=True)
class _Line:
    """The straight path from a baseline to the word vectors of a batch."""

    clf: Classifier
    batch: Batch
    target: Target
    start: torch.Tensor  # [D], the baseline
    aggregate: Aggregate

    def at(self, weight: torch.Tensor | float, embeddings: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The point of the path `weight` of the way from the baseline to the text."""
        moving = self.batch.free[..., None][rows, : embeddings.shape[1]]  # [rows, T, 1]
        return torch.where(moving, self.start + weight * (embeddings - self.start), embeddings).detach()

    def products(
        self, weight: torch.Tensor | float, rows: torch.Tensor, width: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(text - baseline) times the gradient there, summed over D where that suffices, and the logit there."""
        text: list[torch.Tensor] = []

        def edit(embeddings: torch.Tensor) -> torch.Tensor:
            text.append(embeddings.detach())
            return leaf(self.at(weight, embeddings, rows))

        out = self.clf.forward(some_rows(self.batch, rows, width), edit=edit)
        logit = self.target.rows(rows)(out.logits)
        (gradient,) = self.clf.gradient(logit, [out.embeddings])
        product = gradient * (text[0] - self.at(0.0, text[0], rows))
        return product if self.aggregate == "l2" else product.sum(-1, keepdim=True), logit.detach()

    def each(self, places: np.ndarray, rows: Sequence[int]) -> Iterator[tuple[int, torch.Tensor]]:
        """The products of some texts at these places, in order. A text may come several times. [nodes, T, D or 1]"""
        points = torch.as_tensor(places, dtype=torch.float32, device=self.batch.ids.device)
        length = self.batch.ids.shape[1]
        for index, width, which in in_copies(self.batch, len(points), rows):
            weight = points[which.start : which.stop].repeat_interleave(len(index)).reshape(-1, 1, 1)
            product = self.products(weight, index.repeat(len(which)), width)[0]
            padded = torch.nn.functional.pad(product, (0, 0, 0, length - width))
            by_row = padded.unflatten(0, (len(which), len(index))).transpose(0, 1)
            yield from zip(index.tolist(), by_row, strict=True)

    def summed(self, places: np.ndarray, weights: np.ndarray) -> torch.Tensor:
        """The products at these places of the path under these weights, a copy of the text at each. [B, T, D or 1]"""
        device, depth = self.batch.ids.device, len(self.start) if self.aggregate == "l2" else 1
        points, shares = (torch.as_tensor(x, dtype=torch.float32, device=device) for x in (places, weights))
        total = torch.zeros(*self.batch.ids.shape, depth, device=device)
        for rows, width, which in in_copies(self.batch, len(points)):
            some = slice(which.start, which.stop)
            weight = points[some].repeat_interleave(len(rows)).reshape(-1, 1, 1)
            product = self.products(weight, rows.repeat(len(which)), width)[0]  # [nodes * rows, width, D or 1]
            by_node = product.unflatten(0, (len(which), len(rows)))
            total[rows, :width] += torch.einsum("n,nbtd->btd", shares[some], by_node)
        return total


def _gaps(total: torch.Tensor, due: torch.Tensor, baseline: Baseline, steps: int) -> list[float]:
    """How far each text's scores are from summing to the change of its logit, as a share of it; large ones are said."""
    off = (total - due).abs()
    gaps = (off / due.abs().clamp(min=1e-12)).tolist()
    # A logit that hardly changes makes a large share of nothing.
    bad = [row for row, gap in enumerate(gaps) if gap > LARGE_GAP and float(off[row]) > 0.01]
    if bad:
        worst = max(bad, key=lambda row: float(off[row]))
        mend = f"take more steps ({steps} now), or rule=adaptive"
        if baseline == "zero":
            mend = (
                "it does so near zero vectors that enter a norm with nothing added; use rule=adaptive, in a decoder "
                f"baseline=token, or more steps ({steps} now)"
            )
        warnings.warn(
            f"Integrated gradients do not add up in {len(bad)} of {len(gaps)} texts: the scores of one sum to "
            f"{float(total[worst]):.3f} where its logit changed by {float(due[worst]):.3f}. The gradient turns too "
            f"fast on the path; {mend}.",
            Caution,
            stacklevel=2,
        )
    return gaps


def _nested(line: _Line, steps: int, tolerance: float) -> torch.Tensor:
    """Level after level of the nested rule, in each stretch of the path for the texts whose scores still move there.
    [B, T, D or 1]"""
    texts = range(len(line.batch.ids))
    sums = [[_Stretch(begin, end) for begin, end in pairwise(STRETCHES)] for _ in texts]
    open_rows = [list(texts) for _ in sums[0]]
    most = next((k for k, count in enumerate(LEVELS) if k and count >= steps / len(open_rows)), len(LEVELS) - 1)
    for level in range(most + 1):
        for i, rows in enumerate(open_rows):
            if rows:
                for row, products in line.each(sums[rows[0]][i].new_places(level), rows):
                    sums[row][i].products.append(products)
        if level:
            open_rows = [
                [row for row in rows if not _settled(sums[row], i, level, tolerance)]
                for i, rows in enumerate(open_rows)
            ]
    return torch.stack([_sum_of(stretches) for stretches in sums])


@dataclass(frozen=True)
class _Stretch:
    """A stretch of one text's path, and the products at its nodes so far, in the order of the levels."""

    begin: float
    end: float
    products: list[torch.Tensor] = field(default_factory=list)  # [nodes, T, D or 1] each

    def new_places(self, level: int) -> np.ndarray:
        """Where on the path the nodes are that a level adds."""
        known = LEVELS[level - 1] if level else 0
        return self.begin + (self.end - self.begin) * nested()[level][0][known:]

    def integral(self, level: int | None = None) -> torch.Tensor:
        """By the nodes of a level, or by all there are. [T, D or 1]"""
        every = torch.cat(self.products)
        level = LEVELS.index(len(every)) if level is None else level
        weights = torch.as_tensor(nested()[level][1], dtype=every.dtype, device=every.device)
        return (self.end - self.begin) * torch.einsum("n,ntd->td", weights, every[: LEVELS[level]])


def _sum_of(stretches: Sequence[_Stretch]) -> torch.Tensor:
    """The integral over the whole path. [T, D or 1]"""
    return torch.stack([stretch.integral() for stretch in stretches]).sum(0)


def _settled(stretches: Sequence[_Stretch], i: int, level: int, tolerance: float) -> bool:
    """Whether a text's scores are known well enough in one of its stretches.

    A level is exact for twice the degree of the one before, so that its error falls faster than the step that led to
    it; how fast was fitted on the embedded encoder (docs/decoders.md).
    """
    size = float(_rounded(_sum_of(stretches)).abs().sum())
    moved = _rounded(stretches[i].integral(level)) - _rounded(stretches[i].integral(level - 1))
    step = float(moved.abs().sum()) / size if size else 0.0
    return 0.06 * step**1.5 <= tolerance / len(stretches)


def _rounded(scores: torch.Tensor) -> torch.Tensor:
    return (scores.sum(-1).double() / ROUNDED).round()


def _adaptive(
    products: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
    rows: torch.Tensor,
    steps: int,
    tolerance: float,
) -> torch.Tensor:
    """Halve, per text, the part of its path where the gradients explain the change of the logit worst.

    A gradient pass also gives the logit, so the error of every part is known exactly, not estimated. Between its
    nodes a token's gradient is a monotone cubic; what a part still lacks is given to the tokens in proportion to
    what they have in it, so that the scores sum to the change of the logit.
    """
    paths = [_Path() for _ in rows]
    waiting, places = list(range(len(paths))), [np.full(len(paths), x) for x in np.linspace(0, 1, 5)]
    while waiting:
        index = rows[waiting]
        for place in places:
            weight = torch.as_tensor(place, dtype=torch.float32, device=rows.device).reshape(-1, 1, 1)
            values, logits = products(weight, index)
            for i, x, value, logit in zip(waiting, place, values, logits, strict=True):
                paths[i].add(float(x), value.cpu().double().numpy(), float(logit))
        waiting = [i for i in waiting if len(paths[i].x) < steps and not paths[i].settled(tolerance)]
        places = [np.array([paths[i].worst() for i in waiting])]
    return torch.from_numpy(np.stack([path.scores() for path in paths])).float().to(rows.device)


class _Path:
    """What is known of one text's path: nodes, their products and logits, kept in order."""

    def __init__(self) -> None:
        self.x: list[float] = []
        self.products: list[np.ndarray] = []  # [T, D or 1]
        self.logits: list[float] = []

    def add(self, x: float, products: np.ndarray, logit: float) -> None:
        place = bisect(self.x, x)
        self.x.insert(place, x)
        self.products.insert(place, products)
        self.logits.insert(place, logit)

    def parts(self) -> np.ndarray:
        """The integral of every token over every part, by monotone cubics. [nodes - 1, T, D or 1]"""
        whole = PchipInterpolator(self.x, np.stack(self.products)).antiderivative()(self.x)
        return np.diff(whole, axis=0)

    def errors(self, parts: np.ndarray) -> np.ndarray:
        return np.diff(self.logits) - parts.sum((1, 2))

    def worst(self) -> float:
        k = int(np.abs(self.errors(self.parts())).argmax())
        return (self.x[k] + self.x[k + 1]) / 2

    def settled(self, tolerance: float) -> bool:
        parts = self.parts()
        return np.abs(self.errors(parts)).sum() <= tolerance * np.abs(parts.sum(0)).sum()

    def scores(self) -> np.ndarray:
        parts = self.parts()
        size = np.abs(parts) + 1e-12
        lacking = self.errors(parts)[:, None, None] * size / size.sum((1, 2), keepdims=True)
        return (parts + lacking).sum(0)


def _baseline(clf: Classifier, name: Baseline, text: str = "") -> torch.Tensor:
    embeddings = clf.model.get_input_embeddings()
    if text and name != "token":
        raise InputError(f"token={text!r} is the word of baseline=token; leave it out beside baseline={name}.")
    if name == "zero":
        return torch.zeros_like(embeddings.weight[0])
    others = {"pad": clf.model.config.pad_token_id, "mask": getattr(clf.tokenizer, "mask_token_id", None)}
    token = _token(clf, text) if name == "token" else others[name]
    if token is None:
        raise InputError(f"This model has no {name} token; take baseline=zero.")
    with torch.no_grad():  # looked up, not taken from the table: some scale what they look up
        return embeddings(torch.tensor([token], device=embeddings.weight.device))[0]


def _token(clf: Classifier, text: str) -> int:
    """The id of the token that a text is, or of a line break, or of the token that ends texts."""
    tokenizer = clf.tokenizer
    ids = [] if tokenizer is None else tokenizer(text or "\n", add_special_tokens=False)["input_ids"]
    if len(ids) == 1 and ids[0] != getattr(tokenizer, "unk_token_id", None):
        return ids[0]
    if text:
        raise InputError(f"token={text!r} is {len(ids)} tokens of this model; baseline=token takes one.")
    ends = getattr(tokenizer, "eos_token_id", None) or clf.model.config.eos_token_id
    ends = ends[0] if isinstance(ends, (list, tuple)) else ends
    if ends is None:
        raise InputError("This model has no token for a line break or the end of a text; name one with token=...")
    return ends
