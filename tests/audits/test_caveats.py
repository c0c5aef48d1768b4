"""What must be told together with a verdict, and that it is, wherever a verdict is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from audit_facts import a_corpus
from fake_audit import fake

from tiny import tiny
from veridical.audits.caveats import caveats, with_caveats
from veridical.audits.corpora import corpora_of, guessing, in_training, trained_on
from veridical.audits.filing import record_of
from veridical.audits.filing_page import record_page
from veridical.audits.finished import DECIDES, PLACES, Audit, ranking
from veridical.audits.page import audit_page
from veridical.audits.plan import roughly
from veridical.audits.record import AuditSummary, TruthOrder
from veridical.core import store
from veridical.core.errors import Caution
from veridical.core.records import Dataset, Example
from veridical.data.split import text_mark
from veridical.model.classifier import Classifier
from veridical.page.words import interval, net

GUESSING = {"texts": 28, "accuracy": 0.61, "accuracy_low": 0.41, "accuracy_high": 0.78, "majority": 0.54}
SAID = "It is right on 61% of 28 texts (41% to 78%); always saying the most frequent class is right on 54%."


def order(oracle: tuple[float, float], inverted: tuple[float, float], corpus: str = "x") -> TruthOrder:
    margins = (oracle[0], inverted[0], oracle[1], inverted[1])
    return TruthOrder(
        corpus, "sufficiency", ("oracle",), (1.0,), *margins, holds=bool(np.all(np.array(margins[:2]) > 0))
    )


@pytest.fixture
def doubtful() -> AuditSummary:
    """An audit whose model only guesses, on texts that it was trained on."""
    summary, _ = fake()
    home, *others = summary.corpora
    return replace(summary, corpora=(replace(home, seen=3, **GUESSING), *others))


@pytest.mark.parametrize(
    ("oracle", "inverted", "state"),
    [
        ((0.2, 0.001), (0.1, 0.04), "holds"),
        ((0.004, 0.98), (0.1, 0.452), "not shown"),
        ((0.2, 0.001), (-0.1, 0.3), "not shown"),
        ((-0.2, 0.001), (0.1, 0.01), "broken"),
        ((0.2, 0.001), (-0.1, 0.05), "broken"),
    ],
)
def test_a_known_order_is_ticked_only_where_tests_show_it(oracle, inverted, state):
    assert order(oracle, inverted).state(0.05) == state


def test_a_broken_truth_is_told_with_the_verdict(doubtful):
    home = doubtful.corpora[0].name
    fine = replace(doubtful, truth=(order((0.2, 0.001), (0.2, 0.001), home),))
    broken = replace(doubtful, truth=(order((-0.2, 0.001), (0.2, 0.001), home),))
    assert "known truth" not in with_caveats(fine, home)
    assert "A known truth is contradicted." in with_caveats(broken, home)
    assert "sufficiency (which has a vote)" in with_caveats(broken, home)


def test_terminal_notebook_page_and_record_tell_the_same_caveats(doubtful):
    _, examples = fake()
    audit = Audit(Path("audit"), doubtful)
    record = record_of(doubtful, (), (), "")
    page = audit_page(doubtful, examples)
    first_screen = page[: page.index("<nav")]
    for text in (audit.verdict, " ".join(repr(audit).split()), audit._repr_html_(), first_screen, record_page(record)):
        assert SAID in text
        assert in_training(3, 28) in text
    assert record.caveats[doubtful.corpora[0].name][0].endswith("not that it goes by the right things.")


def test_a_sound_verdict_stands_alone():
    summary, _ = fake()
    home = summary.corpora[0].name
    assert with_caveats(summary, home) == summary.verdicts[0].sentence
    assert caveats(summary, "elsewhere") == ()


def test_a_refusal_that_says_that_the_model_guesses_is_not_told_twice(doubtful):
    bad = a_corpus(doubtful.corpora[0].name, **{**GUESSING, "accuracy": 0.5})
    verdict = replace(doubtful.verdicts[0], sentence=f"No verdict: {guessing(bad)}")
    assert caveats(replace(doubtful, corpora=(bad,), verdicts=(verdict,)), bad.name) == ()


def test_texts_that_a_run_was_trained_on_are_counted_and_said(tmp_path):
    clf = Classifier(*tiny("bert"), name="tiny")
    texts = [f"a text of number {k}" for k in range(6)]
    data = Dataset("d", tuple(clf.labels), {"test": tuple(Example(f"t{k}", t, k % 2) for k, t in enumerate(texts))})
    columns = {
        "split": ["train", "train", "dev"],
        "mark": [text_mark(t) for t in ("A text, of number 0.", "x", texts[1])],
    }
    store.write_parquet(tmp_path / "predictions.parquet", columns)
    for model in (tmp_path, str(tmp_path / "model")):
        assert trained_on(model) == set(columns["mark"][:2])
    with pytest.warns(Caution, match=r"d \(test\): 1 of 6 texts also stand in the training data"):
        (corpus,) = corpora_of(clf, data, (), split="test", limit=None, seed=0, trained=trained_on(tmp_path))
    assert (corpus.seen, corpus.dropped, len(corpus.examples)) == (1, 0, 6)  # at home nothing is dropped silently
    assert trained_on(clf) == trained_on(tmp_path / "no-run") == frozenset()


def test_every_table_has_the_same_words_and_says_what_orders_and_what_decides(doubtful):
    _, examples = fake()
    audit = Audit(Path("audit"), doubtful)
    tables = (
        repr(audit),
        audit._repr_html_(),
        audit_page(doubtful, examples),
        record_page(record_of(doubtful, (), (), "")),
    )
    for text in tables:
        flat = " ".join(text.split())
        assert flat.count(DECIDES) >= 1
        assert PLACES in flat
        assert "do not use" in flat
        assert "over the first" in flat
    first, second = ranking(doubtful)[:2]
    assert f"{net(second.net_first)}</td>" in tables[3]  # the record has what its verdict rests on
    assert first.net_first is None


def test_a_record_speaks_plainly(doubtful):
    left = "alti, globenc are left out: There is no wiring."
    page = record_page(record_of(replace(doubtful, left_out=(left,)), (), (), ""))
    assert f" {left}" in page
    assert "Left out: alti" not in page
    assert "the explained class is the predicted one." in page


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-6.94e-18, 0.137, "0 to 0.137"),
        (-0.25, 1e-17, "−0.250 to 0"),
        (-0.0, 0.5, "0 to 0.500"),
        (2e-5, 0.1, "2e−05 to 0.100"),
    ],
)
def test_ends_of_intervals_are_rounded_and_no_zero_is_negative(low, high, words):
    assert interval(low, high) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (5.06, "5 s"), (34.3, "35 s"), (145.0, "140 s"), (1000.0, "17 min")]
)
def test_a_time_that_is_foretold_is_no_finer_than_it_is_known(seconds, words):
    assert roughly(seconds) == words


def test_other_corpora_may_have_fewer_texts():
    clf = Classifier(*tiny("bert"), name="tiny")
    rows = [Example(f"t{k}", f"a text of number {k}", k % 3) for k in range(9)]
    home, away = (Dataset(name, tuple(clf.labels), {"test": tuple(rows)}) for name in ("home", "away"))
    one, other = corpora_of(clf, home, [away], split="test", limit=6, seed=0, ood_limit=3)
    assert (len(one.examples), len(other.examples)) == (6, 3)
    one, other = corpora_of(clf, home, [away], split="test", limit=6, seed=0)
    assert (len(one.examples), len(other.examples)) == (6, 6)
