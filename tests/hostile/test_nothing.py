"""Nothing where something is wanted: no texts, no methods, no metrics are told of, not answered with nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

import veridical
from tiny import tiny
from veridical.core.errors import InputError
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.retraining.options import seeds_of
from veridical.training.jobs import train_all

TINY = "planted:size=40"


@pytest.fixture(scope="module")
def clf() -> Classifier:
    return load(*tiny("bert"))


NO_TEXTS: dict[str, Callable[[], Any]] = {
    "a list": list,
    "a tuple": tuple,
    "a generator": lambda: iter(()),
    "a frame": lambda: pandas.DataFrame({"text": []}),
    "a series": lambda: pandas.Series([], dtype=str),
    "columns": lambda: {"text": []},
    "a split": lambda: {"test": []},
    "a dataset": lambda: veridical.Dataset("none", (), {"test": ()}),
}
READERS: dict[str, Callable[[Classifier, Any], Any]] = {
    "explain": lambda clf, given: veridical.explain(clf, given, "random"),
    "evaluate": lambda clf, given: veridical.evaluate(clf, given, "random", "sparsity"),
    "attack": lambda clf, given: veridical.attack(clf, given),
    "robustness": lambda clf, given: veridical.robustness([clf], given, "random"),
}


@pytest.mark.parametrize("case", NO_TEXTS)
@pytest.mark.parametrize("verb", READERS)
def test_no_texts(verb: str, case: str, clf: Classifier) -> None:
    with pytest.raises(InputError, match=f"^{verb} was given no texts; give it at least one"):
        READERS[verb](clf, NO_TEXTS[case]())


SAY: dict[str, Callable[[Classifier, Any], Any]] = {
    "methods of explain": lambda clf, no: veridical.explain(clf, "good", no),
    "methods of evaluate": lambda clf, no: veridical.evaluate(clf, "good", no),
    "metrics of evaluate": lambda clf, no: veridical.evaluate(clf, "good", "random", no),
    "methods of audit": lambda clf, no: veridical.audit(clf, TINY, out="out", methods=no),
    "metrics of audit": lambda clf, no: veridical.audit(clf, TINY, out="out", methods="random,attention", metrics=no),
    "controls of audit": lambda clf, no: veridical.audit(clf, TINY, out="out", controls=no),
    "methods of robustness": lambda clf, no: veridical.robustness([clf], "good", no),
    "changes of attack": lambda clf, no: veridical.attack(clf, [{"text": "good", "label": 0}], changes=no),
    "methods of fresh": lambda clf, no: veridical.fresh(TINY, "bilstm", methods=no, out="out"),
    "seeds of fresh": lambda clf, no: veridical.fresh(TINY, "bilstm", seeds=no, out="out"),
    "methods of roar": lambda clf, no: veridical.roar(TINY, "bilstm", methods=no, out="out"),
    "seeds of roar": lambda clf, no: veridical.roar(TINY, "bilstm", seeds=no, out="out"),
    "metrics of guidance": lambda clf, no: veridical.guidance("a", {"b": "c"}, TINY, metrics=no, out="out"),
    "methods of a search": lambda clf, no: veridical.search(TINY, "bilstm", over="saloss.weight=1", methods=no),
    "models of validate": lambda clf, no: veridical.validate(out="out", models=no),
    "rules of validate": lambda clf, no: veridical.validate(out="out", rules=no),
    "metrics of validate": lambda clf, no: veridical.validate(out="out", metrics=no),
    "seeds of trainings": lambda clf, no: train_all(TINY, "bilstm", seeds=no, out="out"),
}
TEXTS = [name for name in SAY if name.startswith(("methods", "metrics", "models")) and not name.endswith("explain")]


@pytest.mark.parametrize(
    ("call", "nothing"),
    [*((call, []) for call in SAY), *((call, ()) for call in SAY), *((call, ", ") for call in TEXTS)],
)
def test_nothing_named(
    call: str, nothing: Any, clf: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        SAY[call](clf, nothing)
    assert "one" in str(refused.value) or "list of seeds" in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_no_metric_may_be_asked_for(clf: Classifier) -> None:
    found = veridical.evaluate(clf, "good", "random", None)
    assert not found.cells
    assert len(found.attributions["random"]) == 1


@pytest.mark.parametrize("seeds", [[-1], [2**32], [0, -3]])
def test_seeds_that_are_none(seeds: list[int]) -> None:
    with pytest.raises(InputError, match=r"seeds is .*; it must be from 0 to 4,294,967,295"):
        seeds_of(seeds)
    assert seeds_of(3) == (0, 1, 2)
    assert seeds_of([4, 4, 2]) == (4, 2)
