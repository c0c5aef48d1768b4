"""Shortcuts where the truth is known: a model that learnt one is told of, and one that did not is not accused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import veridical
from veridical.audits.shortcuts.record import Shortcuts, read_shortcuts
from veridical.cli.app import app
from veridical.core.errors import InputError
from veridical.data.planted import BAD, GOOD, SHORTCUT

RULE = {*GOOD, *BAD}
METHODS = ["integrated_gradients", "occlusion", "gradient"]
SMALL = {"epochs": 4, "batch": 16, "lr": 0.01}


def audited(folder: Path, data: str, model: str = "bilstm", config: Any = None, seed: int = 0) -> veridical.Audit:
    run = veridical.train(data, model, seed=seed, out=folder / "run", config=config, progress=False)
    return veridical.audit(run.folder, data, methods=METHODS, out=folder / "audit", progress=False)


def of_class(found: Shortcuts) -> dict[str, tuple[str, ...]]:
    return {word.word: word.labels for word in found.flagged}


@pytest.fixture(scope="module")
def relying(tmp_path_factory: pytest.TempPathFactory) -> veridical.Audit:
    """Of a small model whose shortcut always holds in training."""
    folder = tmp_path_factory.mktemp("relying")
    return audited(folder, "planted:shortcut=1:size=200", "bilstm:hidden=16:embedding=16", SMALL)


@pytest.mark.whole
def test_a_shortcut_is_told_of_and_no_neutral_word(relying: veridical.Audit) -> None:
    accuracy = relying.summary.corpora[0].accuracy
    assert accuracy is not None
    assert accuracy < 0.7  # on test half of the texts have the other word: the model relies on it
    found = veridical.shortcuts(relying.folder, progress=False, limit=100)
    assert of_class(found) == {"empty": ("negative",), "crowded": ("positive",)}
    assert {word.word for word in found.candidates} <= set(SHORTCUT)
    assert found.candidates
    assert "beside the rule" in found.sentence
    train, test = found.flagged[0].taught
    assert (train.split, train.share, train.texts) == ("train", 1.0, 100)
    assert test.share < 0.7
    assert read_shortcuts(relying.folder) == found
    assert 'id="shortcuts"' in relying.page.read_text()
    # As a command: the same, and `report` keeps the section.
    said = CliRunner().invoke(app, ["shortcuts", str(relying.folder), "--limit", "100"])
    assert said.exit_code == 0
    assert "empty" in said.stdout
    assert read_shortcuts(relying.folder) == found
    assert CliRunner().invoke(app, ["report", str(relying.folder)]).exit_code == 0
    assert 'id="shortcuts"' in relying.page.read_text()


@pytest.mark.whole
def test_a_shortcut_that_a_model_relies_on_in_part_is_a_lead(tmp_path: Path) -> None:
    made = audited(tmp_path, "planted:size=600:shortcut=0.9", "bilstm:hidden=32", {"epochs": 12})
    accuracy = made.summary.corpora[0].accuracy
    assert accuracy is not None
    assert 0.8 < accuracy < 0.95  # half of the test texts have the other word: it is misled in some
    shown = veridical.shortcuts(made.folder, progress=False)
    assert {word.word for word in (*shown.candidates, *shown.leads)} == set(SHORTCUT)
    assert all(word.erased.change > 0 for word in shown.leads)


@pytest.mark.whole
def test_more_texts_are_explained_where_more_are_asked_for(relying: veridical.Audit, tmp_path: Path) -> None:
    folder, there = relying.folder, relying.summary.corpora[0].texts
    assert there == 40
    before = relying.page.read_bytes()
    quick = {"methods": "gradient", "out": tmp_path / "out", "permutations": 99, "progress": False}
    few = veridical.shortcuts(folder, **quick)
    more = veridical.shortcuts(folder, texts=few.texts + 1 if few.texts < there else there, **quick)
    assert more.texts == min(few.texts + 1, there)
    assert not more.believed
    assert relying.page.read_bytes() == before  # the result went elsewhere


@pytest.mark.whole
def test_another_model_or_other_data_is_refused(relying: veridical.Audit, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no text '.*' as the audit explained it; name the data that was audited"):
        veridical.shortcuts(relying.folder, data="planted:size=200:seed=5", out=tmp_path / "out", progress=False)
    other = veridical.train(
        *("planted:size=40", "bilstm:hidden=8:embedding=8"), out=tmp_path / "run", config={"epochs": 1}, progress=False
    )
    with pytest.raises(InputError, match="has other weights than the one that"):
        veridical.shortcuts(relying.folder, model=other.folder, out=tmp_path / "out", progress=False)
    with pytest.raises(InputError, match="There is no explanation on file by 'attention'"):
        veridical.shortcuts(relying.folder, methods="attention", out=tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("shortcut", [1, 0.8, 0])
def test_where_test_accuracy_shows_reliance_its_words_are_flagged(shortcut: float, seed: int, tmp_path: Path) -> None:
    """The figures of docs/shortcuts.md come from the same models."""
    made = audited(tmp_path, f"planted:shortcut={shortcut}:seed={seed}", seed=seed)
    found = veridical.shortcuts(made.folder, texts=200, progress=False)
    words = set(of_class(found)) | {word.word for word in found.leads}
    assert words <= {*RULE, *SHORTCUT}  # no neutral word
    if shortcut == 1:
        assert words >= set(SHORTCUT)
    if shortcut == 0:
        assert not found.candidates
        assert not found.leads
        assert {word.word for word in found.of_kind("rule")} == words
