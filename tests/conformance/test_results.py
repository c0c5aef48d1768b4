"""Every result prints, displays, becomes a table and a figure; those whose figures need no model are made by hand."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from pathlib import Path
from typing import Any

import pytest

import veridical
from veridical.audits.compare_table import Entry, Table, Test
from veridical.core.errors import InputError
from veridical.core.frames import Tabular
from veridical.core.records import Example
from veridical.probes.attack import Attack, Attacked
from veridical.probes.guidance.guidance import Guidance
from veridical.probes.guidance.record import ChangeRow, CorpusFacts, CorpusVerdict, GuidanceSummary
from veridical.probes.pos import PartsOfSpeech, TagRow
from veridical.probes.robustness import ALL_TRAINED, ALL_UNTRAINED, Overlap, Robustness
from veridical.retraining.fresh_result import Fresh
from veridical.retraining.fresh_table import tabulate
from veridical.training.search import Candidate, Search

HOSTILE = "<b>bold</b>"
# What these return is not a result: a model, data, a model's own explanations, files, what is registered, a server.
NO_RESULTS = {"load", "load_data", "use", "write_explanations", "read_explanations", "to_attributions", "attribute"}
NO_RESULTS |= {"status", "explain_iter", "serve"}


def comparison() -> Table:
    entries = tuple(
        Entry("home", metric, method, model, mean, low, high, "texts", 9, 0, (0.5,))
        for metric in ("sufficiency", "decision_flip")
        for method in ("attention", "lime")
        for model, mean, low, high in (("base", 0.5, 0.4, 0.6), (HOSTILE, 0.7, None, None))
    )
    tests = (Test("home", "sufficiency", "lime", "base", HOSTILE, "texts", -0.2, 0.01, 0.02, None, None, -0.4, (9, 9)),)
    return Table(("base", HOSTILE), entries, tests, (), frozenset({"decision_flip"}), ("Two runs.",))


def rationales() -> Fresh:
    values = {
        (corpus, method, HOSTILE): {0: score, 1: score + 0.1, 2: None}
        for corpus, score in (("home", 0.6), ("away", 0.4))
        for method in ("full text", "lime", "random")
    }
    return Fresh(Path("fresh"), tabulate(values, ["20% of the words."]), {})


def attacked() -> Attack:
    texts = [
        Attacked(Example(str(i), "It isn't it.", label=0), outcome, "It is not it.", edits, 3, 1, 1, 0.9, after, 4)
        for i, (outcome, edits, after) in enumerate(
            [("success", (("contraction", "isn't", "is not"),), 0.2), ("failed", (), 0.9), ("skipped", (), 0.1)]
        )
    ]
    return Attack(HOSTILE, tuple(texts), "lists of names")  # type: ignore[arg-type]


def tags(models: tuple[str, ...] = ("base", HOSTILE)) -> PartsOfSpeech:
    changes = (0.3, 0.1, 0.5) if len(models) > 1 else (None, None, None)
    rows = tuple(TagRow(tag, 30, 12, (1.5, 0.8)[: len(models)], *changes) for tag in ("ADJ", "NOUN"))
    return PartsOfSpeech(models, "lime", "home", 12, 0, False, rows)


def overlaps() -> Robustness:
    pairs = tuple(Overlap(method, "a", HOSTILE, 0.5, 0.4, 0.6, 9, 0) for method in ("lime", "attention"))
    tests = tuple(
        Overlap(method, name, "", mean, None, None, 9, 1)
        for method in ("lime", "attention")
        for name, mean in ((ALL_TRAINED, 0.5), (ALL_UNTRAINED, None))
    )
    return Robustness(("a", HOSTILE), pairs, tests, "No untrained model.", "Seeds differ.", 0.25, 10, "predicted")


def searched() -> Search:
    candidates = tuple(
        Candidate(f"saloss:weight={weight}", value, {"lime": value, "random": 0.9}, {"macro_f1": 0.8}, (Path(weight),))
        for weight, value in (("0.01", 0.4), (HOSTILE, 0.3))
    )
    return Search(Path("search"), "decision_flip", "lower", 20, candidates, 1)


def guided() -> Guidance:
    def change(what: str, method: str) -> ChangeRow:
        return ChangeRow("home", what, HOSTILE, method, 0.1, 0.3, 0.2, 0.1, 0.3, 0.01, 0.02, 9, (2, 2), "higher")  # type: ignore[arg-type]

    verdict = CorpusVerdict("home", HOSTILE, "hacked", "Reliance did not move.", ())  # type: ignore[arg-type]
    nothing: dict[str, Any] = {field.name: () for field in dataclasses.fields(GuidanceSummary)}
    given = nothing | {
        "title": "att against baseline on home",
        "headline": "The loss was hacked.",
        "verdicts": (verdict,),
        "corpora": (CorpusFacts("home", "home", 9, 9, 9, 0, 0, 0),),  # type: ignore[arg-type]
        "changes": (change("reliance", ""), change("auc", "lime")),
    }
    return Guidance(Path("guidance"), GuidanceSummary(**given))


# What is made, and how many rows its table has.
MADE = [
    (comparison, 8),
    (rationales, 6),
    (attacked, 3),
    (tags, 2),
    (overlaps, 6),
    (searched, 2),
    (guided, 2),
]


@pytest.fixture(params=MADE, ids=lambda made: made[0].__name__)
def made(request: pytest.FixtureRequest) -> tuple[Any, int]:
    build, rows = request.param
    return build(), rows


def test_every_verb_returns_a_result_that_becomes_a_table():
    verbs = {name for name in veridical.__all__ if inspect.isfunction(getattr(veridical, name))} - NO_RESULTS
    assert {"audit", "compare", "fresh", "search", "train"} <= verbs
    for name in sorted(verbs):
        verb = getattr(veridical, name)
        returned = typing.get_type_hints(inspect.unwrap(verb))["return"]
        kinds = typing.get_args(returned) or (returned,)
        assert all(issubclass(kind, Tabular) for kind in kinds), (name, returned)
        for kind in kinds:
            assert {"_repr_html_", "_rows", "plot"} <= set(dir(kind)), kind
            assert kind._rows is not Tabular._rows, kind
            assert kind.COLUMNS, kind


def test_it_prints_what_it_found_and_not_its_fields(made):
    shown = repr(made[0])
    assert type(made[0]).__name__ + "(" not in shown
    assert HOSTILE in shown
    assert len(shown) < 2000


def test_a_notebook_shows_it_and_escapes(made):
    html = made[0]._repr_html_()
    assert "&lt;b&gt;bold" in html
    assert HOSTILE not in html
    assert "<table" in html


def test_as_a_frame_and_as_a_dataset_it_has_its_columns(made):
    result, rows = made
    frame, dataset = result.to_pandas(), result.to_dataset()
    assert list(frame.columns)[: len(result.COLUMNS)] == list(result.COLUMNS)
    assert dataset.column_names == list(frame.columns)
    assert len(frame) == len(dataset) == rows


def test_it_is_drawn_into_new_axes_or_into_those_given(made, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    result = made[0]
    ax = result.plot(figsize=(4, 3))
    ax.figure.savefig(tmp_path / "figure.svg")  # a name with a dollar sign or a bracket breaks only now
    assert ax.get_xlabel() or ax.get_ylabel()
    assert ax.lines or ax.patches
    assert result.plot(ax=ax) is ax
    with pytest.raises(InputError, match="give one of the two"):
        result.plot(ax=ax, figsize=(4, 3))
    pyplot.close("all")


def test_figures_of_one_metric_or_corpus_are_named_and_others_refused():
    assert comparison().plot("decision_flip").get_xlabel().startswith("decision_flip (lower is better)")
    with pytest.raises(InputError, match="This comparison has no metric"):
        comparison().plot("auc")
    with pytest.raises(InputError, match="This comparison has no corpus"):
        rationales().plot("elsewhere")
    with pytest.raises(InputError, match="This comparison has no corpus"):
        guided().plot("elsewhere")
    assert "away" in rationales().plot("away").get_xlabel()


def test_a_comparison_names_corpus_and_metric_once_and_marks_what_differs():
    html = comparison()._repr_html_()
    assert html.count("<th>home</th>") == 1
    assert html.count("0.700*") == 1
    frame = comparison().to_pandas()
    tested = frame[(frame.metric == "sufficiency") & (frame.method == "lime") & (frame.model == HOSTILE)]
    assert tested.difference_to_first.tolist() == [0.2]


def test_one_model_has_no_difference_between_parts_of_speech():
    assert "difference" not in tags(("base",)).to_pandas().columns
    assert "difference" in tags().to_pandas().columns
