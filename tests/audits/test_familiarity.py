"""What an audit says of erased texts: the operator by the model, the test of masks with its control, the best order."""

from __future__ import annotations

import warnings
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

import veridical
from tiny import tiny
from toy import toy
from veridical.audits.familiarity import FEWEST, familiarity_of, mask_tests
from veridical.audits.familiarity import _tested as judged
from veridical.audits.masf import TEXTS, passes
from veridical.audits.operator import operator_for
from veridical.audits.plan import is_reference
from veridical.audits.selection import default_methods
from veridical.core.errors import Caution, InputError
from veridical.model.classifier import Classifier
from veridical.model.mask import note_ratio


def classifier(ratio: float) -> Classifier:
    model, tokenizer = tiny("bert", num_labels=2)
    model.config.id2label = {0: "bad", 1: "good"}
    note_ratio(model, ratio)
    return Classifier(model, tokenizer, name="tiny")


@pytest.fixture
def _unmarked() -> Any:
    """Models of tests are shared: what one test notes in a configuration another must not read."""
    yield
    note_ratio(tiny("bert", num_labels=2)[0], 0.0)


@pytest.mark.usefixtures("_unmarked")
def test_the_operator_is_the_models_unless_said() -> None:
    assert operator_for(classifier(1.0), None) == "mask"
    assert operator_for(classifier(1.0), "attention") == "attention"
    assert operator_for(classifier(0.0), None) == "delete"


@pytest.mark.usefixtures("_unmarked")
def test_an_evaluation_that_erases_otherwise_than_the_model_knows_says_so() -> None:
    texts = toy(test=4).splits["test"]
    with pytest.warns(
        Caution, match="trained on masked texts, and sufficiency would erase otherwise.*sufficiency:by=mask"
    ):
        veridical.evaluate(classifier(1.0), texts, ["gradient"], ["sufficiency", "sparsity"], progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Caution)
        veridical.evaluate(classifier(1.0), texts, ["gradient"], ["sufficiency:by=mask"], progress=False)
        veridical.evaluate(classifier(0.0), texts, ["gradient"], ["sufficiency"], progress=False)


@pytest.mark.usefixtures("_unmarked")
def test_of_other_models_it_says_how_foreign_erased_texts_are() -> None:
    data = toy(test=30)
    plain = familiarity_of(classifier(0.0), data.splits["test"], "delete")
    assert "foreign to this model" in plain.sentence
    assert set(plain.agreement) == {"delete ~ mask", "delete ~ attention", "mask ~ attention"}
    assert all(0 <= (share or 0.0) <= 1 for share in plain.agreement.values())
    assert 0.5 <= plain.null_confidence <= 1
    assert f"{plain.null_confidence:.0%} sure" in plain.sentence
    half = familiarity_of(classifier(0.5), data.splits["test"], "mask")
    assert "up to 50%" in half.sentence
    assert "Beyond that share" in half.sentence
    other = familiarity_of(classifier(0.5), data.splits["test"], "delete")
    assert "erased by delete" in other.sentence


@pytest.mark.usefixtures("_unmarked")
def test_the_test_of_masks() -> None:
    clf, data = classifier(1.0), toy(train=80, test=20)
    texts = [(e, np.arange(len(e.ids), dtype=float)) for e in clf.encode(data.splits["test"])]
    rows = mask_tests(clf, "toy", data.splits["train"], {"late": texts}, ratios=(0.5, 0.9))
    assert [(row.method, row.ratio, row.texts, row.reference) for row in rows] == [
        ("late", 0.5, 20, 40),
        ("late", 0.9, 20, 40),
    ]
    assert mask_tests(clf, "toy", data.splits["train"], {"late": texts}, ratios=(0.5, 0.9)) == rows
    assert all(0 < row.simes <= 1 for row in rows)
    assert all(len(row.p) == len(row.control_p) == 20 for row in rows)  # of every text
    assert all(min(row.p) >= 1 / 41 for row in rows)
    matched = mask_tests(clf, "toy", data.splits["train"], {"late": texts}, ratios=(0.9,), against="matched")
    assert matched[0].share <= 1
    assert mask_tests(clf, "toy", data.splits["train"][: FEWEST - 1], {"late": texts}) == ()


@pytest.mark.usefixtures("_unmarked")
@pytest.mark.parametrize(("train", "test"), [(80, 20), (500, 60), (FEWEST - 1, 20)])
def test_what_the_test_of_masks_takes_is_known_before(train: int, test: int) -> None:
    clf, data = classifier(1.0), toy(train=train, test=test)
    texts = [(e, np.arange(len(e.ids), dtype=float)) for e in clf.encode(data.splits["test"])][:TEXTS]
    before = clf.forwards
    mask_tests(clf, "toy", data.splits["train"], {"late": texts, "later": texts})
    assert clf.forwards - before == passes(test, train, orders=2)


def test_where_the_control_is_not_found_either_nothing_is_said() -> None:
    quiet, loud = np.full(40, 0.6), np.full(40, 0.01)

    def found(p: np.ndarray, control: np.ndarray) -> str:
        return judged("c", "m", 0.5, p, "zero_id_attended", control, 100).found

    assert found(quiet, quiet) == "cannot tell"
    assert found(quiet, loud) == "familiar"
    assert found(loud, quiet) == found(loud, loud) == "foreign"


@pytest.mark.usefixtures("_unmarked")
def test_an_audit_of_a_masked_model(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    methods = ["gradient", "attention", "best:by=mask:beam=2"]
    made = veridical.audit(
        classifier(1.0),
        toy(dev=60, test=24),
        out=tmp_path,
        methods=methods,
        metrics=["comprehensiveness"],
        progress=True,
    )
    assert "Of these the test of masks takes 540." in capsys.readouterr().err  # 60 + 2 x 5 x 2 x 24
    summary, page = made.summary, made.page.read_text("utf-8")
    assert summary.settings.by == "mask"
    assert [metric.name for metric in summary.metrics] == ["comprehensiveness:by=mask"]
    assert {row.method for row in summary.ranking} == {"gradient", "attention"}  # the best is never ranked
    assert {row.method for row in summary.best_shares} == {"gradient", "attention"}
    assert all(row.share is None or row.share <= 1.5 for row in summary.best_shares)
    assert summary.familiarity is not None
    assert "nothing new to it" in page
    assert "From random to best" in page
    assert {row.method for row in summary.mask_tests} == {summary.ranking[0].method, "random"}
    few = files("veridical.audits").joinpath("familiarity.html").read_text("utf-8")
    assert f"fewer than {FEWEST} texts in another split" in few
    assert "this test cannot tell" in page or any(row.found != "cannot tell" for row in summary.mask_tests)


def test_references_are_asked_for_by_name_and_never_alone(tmp_path: Any) -> None:
    assert is_reference("best:beam=3")
    assert not is_reference("gradient")
    assert not is_reference("oracle")
    assert "best" not in default_methods()
    with pytest.raises(InputError, match="never ranked"):
        veridical.audit(classifier(0.0), toy(test=24), out=tmp_path, methods=["best"], progress=False)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_of_a_decoder_whose_last_token_is_a_word_attention_is_left_out(family: str, tmp_path: Any) -> None:
    model, tokenizer = tiny(family, num_labels=2)
    clf = Classifier(model, tokenizer, name="tiny")
    said = familiarity_of(clf, toy(test=20).splits["test"], "delete")
    assert not any("attention" in pair for pair in said.agreement)
    assert "mask=1" not in said.sentence  # it has no mask token
    made = veridical.audit(
        clf, toy(test=8), out=tmp_path, methods=["gradient", "attention"], metrics=["comprehensiveness"], progress=False
    )
    assert made.summary.familiarity is not None
    assert made.page.exists()
