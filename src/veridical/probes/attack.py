"""`attack`: right predictions that a classifier loses to changes that leave a text's meaning alone (REGEX, table 6).

A greedy search as in TextAttack's CheckList recipe: ask about every single change, keep the one that costs the gold
class most, go on from there, until the prediction changes or no place is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from veridical.core import tables
from veridical.core.errors import InputError
from veridical.core.frames import Columns, Tabular
from veridical.core.options import takes
from veridical.core.records import Example, Given, Variant
from veridical.core.seed import generator
from veridical.core.statistics import mean
from veridical.core.text import words_of
from veridical.data.objects import examples_of
from veridical.explanations.explain import warn_of_cuts
from veridical.model.ask import Asker, ask
from veridical.model.classifier import Classifier
from veridical.model.load import classifier_of
from veridical.page.snippet import told
from veridical.probes.checklist import Place, finder_of, places, rewrite
from veridical.probes.checklist_recipe import recipes_places
from veridical.probes.options import CHANGES, AttackOptions, Change

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Outcome = Literal["success", "failed", "skipped"]
PART = 32  # texts whose questions are held at once


@dataclass(frozen=True, slots=True)
class Attacked:
    """What became of one text. Skipped: the prediction was wrong to begin with."""

    example: Example
    outcome: Outcome
    text: str  # as last changed
    edits: tuple[tuple[Change, str, str], ...]  # kind, before, after
    words: int  # of the text as it was
    perturbed: int  # of these
    places: int  # that could be changed
    probability: float  # of the gold class
    probability_after: float
    queries: int  # distinct texts the model was asked about


@dataclass(frozen=True, slots=True, repr=False)
class Attack(Tabular):
    """All texts of an attack on one model, and what its names and locations were found with."""

    COLUMNS: ClassVar[Columns] = {  # a row per text
        **{"model": str, "id": str, "outcome": str, "before": str, "after": str, "edits": list[list[str]]},
        **{"probability": float, "probability_after": float, "queries": int},
    }

    model: str
    results: tuple[Attacked, ...]
    entities: str

    def __repr__(self) -> str:
        return to_text({self.model: self}).rstrip()

    def _repr_html_(self) -> str:
        return told(_cells({self.model: self}), right=(1,), lead=f"Names and locations: {self.entities}.")

    def _rows(self) -> list[dict[str, Any]]:
        return to_rows({self.model: self})

    def plot(self, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None) -> Axes:
        """Accuracy before the attack and under it. Returns the Axes, those of `ax` or new ones."""
        from veridical.page.charts import bars

        summary, names = self.summary, ("accuracy", "accuracy_under_attack")
        values = [float(summary[name] or 0) for name in names]
        lines = ("before", "under attack")
        return bars(lines, values, ax, figsize, signed=False, label=f"accuracy (%), {len(self.results)} texts")

    def count(self, outcome: Outcome) -> int:
        return sum(attacked.outcome == outcome for attacked in self.results)

    @property
    def summary(self) -> dict[str, float | int | None]:
        """The lines of the paper's table. Perturbed words: of successes; queries: of texts that were attacked."""
        won = [text for text in self.results if text.outcome == "success"]
        tried = [text for text in self.results if text.outcome != "skipped"]
        n = len(self.results)
        return {
            "texts": n,
            "successes": len(won),
            "failed": len(tried) - len(won),
            "skipped": n - len(tried),
            "nothing_to_change": sum(not text.places for text in tried),
            "accuracy": 100 * len(tried) / n,
            "accuracy_under_attack": 100 * (len(tried) - len(won)) / n,
            "success_rate": 100 * len(won) / len(tried) if tried else None,
            "perturbed_words": mean(100 * text.perturbed / text.words for text in won),
            "words": mean(text.words for text in self.results),
            "queries": mean(text.queries for text in tried),
        }


@takes(AttackOptions)
def attack(clf: Any, examples: Given, options: AttackOptions) -> Attack:
    """Change names, numbers, places and contractions in texts, and count the right predictions that are lost.

    Every text whose prediction is right is attacked, by a greedy search for the change that costs the gold class most.

    Args:
        clf: What `load` returns, or anything that it takes.
        examples: The texts, in any form that `explain` takes, with their labels; an `Example` has the gold class as the
            model numbers it.

    Returns:
        What became of every text (`.results`), and the figures over all of them (`.summary`).

    Example:
        >>> test = veridical.load_data("hutto/movies").splits["test"]
        >>> veridical.attack("runs/mine", test).summary["accuracy_under_attack"]
    """
    wanted: list[Change] = [change for change in CHANGES if change in options.changes]
    clf = classifier_of(clf)
    examples = examples_of(examples, "attack", labels=clf.labels, multilabel=clf.kind == "multi")
    _check(clf, examples)
    finder, found_by = finder_of(options.entities)
    found_places, most = (recipes_places, 3) if options.preset == "textattack" else (places, 5)
    warn_of_cuts(clf, clf.encode(examples))
    results: list[Attacked] = []
    for start in range(0, len(examples), PART):
        part = examples[start : start + PART]
        askers = [
            _greedy(
                clf,
                example,
                found_places(
                    example.text,
                    wanted,
                    finder,
                    alternatives=options.alternatives or most,
                    random=generator("attack", options.seed, example.id),
                ),
            )
            for example in part
        ]
        results += [replace(attacked, queries=queries) for attacked, queries in ask(clf, askers, budget=options.budget)]
        if options.tick is not None:
            options.tick(len(part))
    return Attack(clf.name, tuple(results), found_by)


def _greedy(clf: Classifier, example: Example, places: list[Place]) -> Asker[Attacked]:
    gold = example.label
    assert isinstance(gold, int)
    words, edits, still = words_of(example.text), [], places
    (whole,) = (yield _questions(clf, example, [example.text])).probabilities
    outcome: Outcome = "failed" if whole.argmax() == gold else "skipped"
    probability = float(whole[gold])
    while still and outcome == "failed":
        candidates = [(place, option) for place in still for option in place.options]
        texts = [rewrite(example.text, [*edits, candidate]) for candidate in candidates]
        answers = (yield _questions(clf, example, texts)).probabilities  # [candidates, C]
        # A changed prediction first, then the lowest probability of the gold class, then the first.
        best = min(range(len(texts)), key=lambda i: (answers[i].argmax() == gold, answers[i, gold], i))
        edits.append(candidates[best])
        probability = float(answers[best, gold])
        outcome = "failed" if answers[best].argmax() == gold else "success"
        still = [place for place in still if not place.meets(candidates[best][0])]
    touched = {
        i for place, _ in edits for a, b in place.spans for i, (c, d) in enumerate(words) if max(a, c) < min(b, d)
    }
    return Attacked(
        example=example,
        outcome=outcome,
        text=rewrite(example.text, edits),
        edits=tuple((place.change, example.text[slice(*place.spans[0])], new) for place, new in edits),
        words=len(words),
        perturbed=len(touched),
        places=len(places),
        probability=float(whole[gold]),
        probability_after=probability,
        queries=0,  # the scheduler counts them
    )


def _questions(clf: Classifier, example: Example, texts: Sequence[str]) -> list[Variant]:
    return [Variant(e.ids, e.types) for e in clf.encode([replace(example, text=text) for text in texts])]


def _check(clf: Classifier, examples: Sequence[Example]) -> None:
    if clf.kind == "multi":
        raise InputError("This model gives a text several labels; the attack needs one class per text.")
    for example in examples:
        if not isinstance(example.label, int):
            raise InputError(
                f"Example {example.id!r} has no gold class, so an attack on it cannot be judged; label it."
            )


# -- tables -------------------------------------------------------------------------------------------------

LINES = {
    "texts": "texts",
    "successes": "successful attacks",
    "failed": "failed attacks",
    "skipped": "skipped (wrong before)",
    "nothing_to_change": "failed, nothing to change",
    "accuracy": "accuracy before (%)",
    "accuracy_under_attack": "accuracy under attack (%)",
    "success_rate": "attack success rate (%)",
    "perturbed_words": "perturbed words, mean (%)",
    "words": "words, mean",
    "queries": "queries, mean",
}


def to_text(attacks: Mapping[str, Attack]) -> str:
    """The paper's table: a line per figure, a column per model."""
    rows = _cells(attacks)
    (by,) = {held.entities for held in attacks.values()}
    return f"{tables.to_text(rows, right=range(1, len(rows[0])))}\n\nNames and locations: {by}.\n"


def _cells(attacks: Mapping[str, Attack]) -> list[list[str]]:
    summaries = {name: held.summary for name, held in attacks.items()}
    rows = [[line, *(_shown(summary[name]) for summary in summaries.values())] for name, line in LINES.items()]
    return [["", *summaries], *rows]


def to_csv(attacks: Mapping[str, Attack]) -> str:
    """A line per model."""
    return tables.to_csv({"model": name, **held.summary, "entities": held.entities} for name, held in attacks.items())


def to_rows(attacks: Mapping[str, Attack]) -> list[dict[str, Any]]:
    """A row per model and text, for a .jsonl file."""
    return [
        {
            "model": name,
            "id": text.example.id,
            "outcome": text.outcome,
            "before": text.example.text,
            "after": text.text,
            "edits": [list(edit) for edit in text.edits],
            "probability": text.probability,
            "probability_after": text.probability_after,
            "queries": text.queries,
        }
        for name, held in attacks.items()
        for text in held.results
    ]


def _shown(value: float | int | None) -> str:
    if value is None:
        return "none"
    return str(value) if isinstance(value, int) else f"{value:.2f}"
