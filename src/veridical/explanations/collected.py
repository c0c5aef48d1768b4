"""What `explain` returns of several texts: a list and a dict as ever, that also display, plot and make tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from veridical.core.errors import InputError
from veridical.core.frames import Tabular
from veridical.core.tables import to_text
from veridical.explanations.display import number, pieces, printable, top
from veridical.explanations.explanation import Explanation
from veridical.explanations.page import SHOWN, explain_snippet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 40  # of a text in a line


class Explanations(list[Explanation], Tabular):
    """A list of explanations, one per text."""

    COLUMNS = Explanation.COLUMNS

    @overload
    def __getitem__(self, place: SupportsIndex) -> Explanation: ...
    @overload
    def __getitem__(self, place: slice) -> Explanations: ...
    def __getitem__(self, place: SupportsIndex | slice) -> Explanation | Explanations:
        found = super().__getitem__(place)
        return Explanations(found) if isinstance(found, list) else found

    def __repr__(self) -> str:
        return _lines({"": self})

    def _repr_html_(self) -> str:
        return explain_snippet({"": self})

    def _rows(self) -> Iterator[Any]:
        for explanation in self:
            yield from explanation._rows()

    def plot(self, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None) -> Axes:
        """A heat map with a row per text (of the first twelve), whose words stand in their cells; of a single text its
        bars. Returns the Axes, those of `ax` or new ones."""
        from veridical.explanations.charts import bars, texts_heat

        return bars(self[0], ax, figsize) if len(self) == 1 else texts_heat(self, ax, figsize)


class ExplanationsByMethod(dict[str, Explanations], Tabular):
    """A dict from methods to their explanations, which are of the same texts in the same order."""

    COLUMNS = Explanation.COLUMNS

    def __repr__(self) -> str:
        return _lines(self)

    def _repr_html_(self) -> str:
        return explain_snippet(self)

    def _rows(self) -> Iterator[Any]:
        for explanations in self.values():
            yield from explanations._rows()

    def plot(self, text: int = 0, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None) -> Axes:
        """A heat map of one of the texts, by its place: its words in columns, the methods in rows. Returns the Axes,
        those of `ax` or new ones."""
        from veridical.explanations.charts import methods_heat

        count = min(map(len, self.values()), default=0)
        if not -count <= text < count:
            places = f"from 0 to {count - 1}" if count > 1 else "0" if count else "none"
            raise InputError(f"text is {text}, the place of a text among {count}; it must be {places}.")
        return methods_heat([explanations[text] for explanations in self.values()], ax, figsize)


def _lines(by_method: Mapping[str, Sequence[Explanation]]) -> str:
    """A line per text and method: the class, the words that matter most, and the text."""
    cells = [["text", "explained", "", "method", "words that matter most", ""]]
    count = max(map(len, by_method.values()), default=0)
    for same in list(zip(*by_method.values(), strict=False))[:SHOWN]:
        one_class = len({explanation.question for explanation in same}) == 1
        for place, explanation in enumerate(same):
            cells.append(_line(explanation, first=place == 0, same_class=place > 0 and one_class))
    if len(cells) == 1:
        return "no explanation"
    more = [f"and {count - SHOWN} more"] if count > SHOWN else []
    return "\n".join([to_text(cells, right=(2,)), *more])


def _line(explanation: Explanation, *, first: bool, same_class: bool) -> list[str]:
    strongest = top(pieces(explanation))
    largest = abs(strongest[0].score or 0.0) if strongest else 0.0
    words = ", ".join(
        f"{printable(piece.text)} {number(piece.score or 0.0, explanation.signed, largest)}" for piece in strongest
    )
    text = printable(explanation.text).replace("\n", " ")
    return [
        _short(printable(explanation.example.id), 16) if first else "",
        "" if same_class else explanation.question,
        "" if same_class else f"{explanation.probabilities[explanation.target]:.3f}",
        explanation.method,
        words,
        _short(text, WIDTH) if first else "",
    ]


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
