"""The record of an audit: what it says, that it fits two pages, and what changed since an earlier one."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_audit import METHODS, METRICS, SCRIPT, fake
from page_reader import Reader
from scipy import stats
from test_audit_page_branches import planted

from veridical.audits.changes import since
from veridical.audits.filing import AuditRecord, Evidence, TextFigures, read_earlier, read_record, record_of
from veridical.audits.filing_page import file_record, record_page
from veridical.audits.known_error import KNOWN
from veridical.audits.limits import limits, reliance
from veridical.core import store, stored
from veridical.core.errors import InputError

CHROMIUM, COUNTER = shutil.which("chromium"), shutil.which("pdfinfo")
TEXTS = 40
BELIEVED = "integrated_gradients"


def evidence(wrong: int = 4, shift: float = 0.0, prefix: str = "t", texts: int = TEXTS) -> Evidence:
    """The first `wrong` texts are wrong; every text's comprehensiveness is moved by `shift`."""
    draw = np.random.default_rng(0).random(texts)
    values = tuple(float(value) for value in draw + shift)
    figures = TextFigures(BELIEVED, "comprehensiveness", "higher", tuple(range(texts)), values)
    right = tuple(k >= wrong for k in range(texts))
    return Evidence("movies", tuple(f"{prefix}{k}" for k in range(texts)), right, (figures,))


def a_record(of: Evidence | None = None, purpose: str = "", **changes: object) -> AuditRecord:
    summary, _ = fake(ood=())
    of = of or evidence()
    share = sum(map(bool, of.right)) / max(1, len(of.right))
    summary = replace(summary, corpora=(replace(summary.corpora[0], texts=len(of.right), accuracy=share),))
    return replace(record_of(summary, [of], limits(summary), purpose), **changes)  # type: ignore[arg-type]


def only(found, words: str):
    [change] = [change for change in found.changes if words in change.what]
    return change


# -- what changed ---------------------------------------------------------------------------------------------


def test_the_same_again_is_no_regression():
    found = since(a_record(), a_record())
    assert found.regressions == ()
    assert {change.outcome for change in found.changes} == {"no change shown"}
    assert only(found, "accuracy").test == "sign test, paired"
    assert only(found, "comprehensiveness").test == "signed rank, paired"


def test_a_model_that_got_worse_is_a_regression():
    found = since(a_record(evidence(wrong=4)), a_record(evidence(wrong=14)))
    change = only(found, "accuracy")
    assert (change.before, change.now, change.n) == ("90.0%", "65.0%", (TEXTS, TEXTS))
    assert change.p == pytest.approx(0.5**10)  # ten texts were lost, none was won
    assert change.p_holm == pytest.approx(2 * change.p)  # two tests
    assert found.regressions == (change,)
    assert only(since(a_record(evidence(wrong=14)), a_record(evidence(wrong=4))), "accuracy").outcome == "better"


def test_other_texts_are_two_samples():
    found = since(a_record(evidence(wrong=4)), a_record(evidence(wrong=14, shift=-0.5, prefix="other")))
    accuracy, score = only(found, "accuracy"), only(found, "comprehensiveness")
    assert (accuracy.test, score.test) == ("Fisher's exact test", "rank sum")
    table = [[36, 4], [26, 14]]
    assert accuracy.p == pytest.approx(stats.fisher_exact(table, alternative="greater").pvalue)
    then, now = (np.array(each.figures[0].values) for each in (evidence(), evidence(shift=-0.5)))
    wanted = stats.mannwhitneyu(now, then, alternative="less", method="asymptotic").pvalue
    assert score.p == pytest.approx(wanted, rel=0.05)
    assert {change.outcome for change in (accuracy, score)} == {"worse"}


def test_texts_that_both_have_are_compared_in_pairs():
    found = since(a_record(evidence(texts=24)), a_record(evidence(texts=40, shift=-0.1)))
    change = only(found, "comprehensiveness")
    assert (change.test, change.n) == ("signed rank, paired", (24, 24))
    assert change.outcome == "worse"


def test_a_metric_of_which_lower_is_better_gets_worse_upwards():
    def lower(shift: float) -> Evidence:
        of = evidence(shift=shift)
        return replace(of, figures=(replace(of.figures[0], better="lower"),))

    assert only(since(a_record(lower(0)), a_record(lower(0.2))), "comprehensiveness").outcome == "worse"
    assert only(since(a_record(lower(0.2)), a_record(lower(0))), "comprehensiveness").outcome == "better"


@pytest.mark.parametrize(
    ("name", "now", "outcome"),
    [("behind", "worse", "worse"), ("chance", "do not use", "worse"), ("open", "open", "no change shown")],
)
def test_what_was_to_be_believed_and_is_shown_to_be_worse_is_a_regression(name, now, outcome):
    record = a_record()
    moved = tuple(replace(s, list=name) if s.method == BELIEVED else s for s in record.ranking)
    change = only(since(record, replace(record, ranking=moved)), "list of")
    assert (change.before, change.now, change.outcome, change.test) == ("believe", now, outcome, "the audit's own")


def test_what_is_gone_is_said_and_not_tested():
    record = a_record()
    without = replace(record, ranking=record.ranking[1:], evidence=(replace(evidence(), figures=()),))
    found = since(record, without)
    assert [(c.now, c.outcome) for c in found.changes if BELIEVED in c.what] == [
        ("not audited", "not tested"),
        ("not measured", "not tested"),
    ]
    assert found.regressions == ()


def test_differences_of_what_was_audited_are_named():
    summary, _ = planted()
    record = record_of(summary, (), (), "")
    other = replace(
        record,
        model=replace(record.model, hash="f" * 16),
        corpora=(replace(record.corpora[0], sha256="9" * 64),),
        settings=replace(record.settings, by="mask"),
        stamp={**record.stamp, "code": "8"},
    )
    assert since(record, other).differences == (
        f"The model is another: fingerprint {'b' * 16} then, {'f' * 16} now.",
        "planted:size=9: not the same texts and labels.",
        "How tokens are erased: delete then, mask now.",
        "The code is another (Veridical 0.3.0 then, 0.3.0 now).",
    )
    assert since(record, record).differences[:2] == (
        f"The model is the same (fingerprint {'b' * 16}).",
        "planted:size=9: the same texts.",
    )


# -- files ----------------------------------------------------------------------------------------------------


def test_a_record_is_read_as_it_was_written(tmp_path):
    summary, _ = fake(ood=())
    first = file_record(tmp_path, summary, [evidence()], "A <b>gate</b>", None)
    assert read_record(tmp_path / "record.json") == first
    assert store.read_json(tmp_path / "record.json")["schema"] == 1
    again = file_record(tmp_path / "next", summary, [evidence()], "", read_earlier(tmp_path, tmp_path / "next"))
    assert again.since is not None
    assert read_record(tmp_path / "next" / "record.json") == again
    assert read_earlier(tmp_path / "record.json", "elsewhere") == first


def test_an_audit_from_before_records_can_be_held_against():
    folder = Path(__file__).parent / "audit_of_0.2"
    earlier = read_earlier(folder, "out")
    assert earlier.verdicts
    assert since(earlier, earlier).regressions == ()


def test_scores_of_an_audit_without_a_record_are_two_samples(tmp_path):
    summary, _ = fake(ood=())
    stored.write(tmp_path / "summary.json", summary)
    values = evidence().figures[0].values
    same = {"corpus": "movies", "metric": "comprehensiveness", "method": BELIEVED, "control": ""}
    store.write_parquet(
        tmp_path / "scores.parquet", {**{name: [v] * TEXTS for name, v in same.items()}, "value": values}
    )
    found = since(read_earlier(tmp_path, "out"), a_record(evidence(shift=-0.5)))
    assert (only(found, "comprehensiveness").test, only(found, "comprehensiveness").outcome) == ("rank sum", "worse")


def test_mistakes_are_explained(tmp_path):
    with pytest.raises(InputError, match="holds no earlier audit; name the folder of a finished audit, or its record"):
        read_earlier(tmp_path / "nowhere", "out")
    with pytest.raises(InputError, match="is the folder that is written to"):
        read_earlier(tmp_path, tmp_path)
    (tmp_path / "record.json").write_text('{"schema": 2}')
    with pytest.raises(InputError, match="has schema 2"):
        read_earlier(tmp_path / "record.json", "out")


# -- the page -------------------------------------------------------------------------------------------------


def test_the_page_says_what_an_auditor_files():
    before, now = a_record(evidence(wrong=4)), a_record(evidence(wrong=14), purpose=f"Release gate {SCRIPT}")
    page = record_page(replace(now, since=since(before, now)))
    Reader(page)
    assert "<script" not in page
    for words in (
        "Release gate",
        "1 regression",
        "sign test, paired",
        "Who may rely on it",
        "Known limits",
        f"{KNOWN.wrong} of {KNOWN.worlds}",
    ):
        assert words in page
    bare = record_page(replace(a_record(), verdicts=(), ranking=()))
    assert "No verdict was reached" in bare
    assert "Held against no earlier record" in bare
    assert "Not stated" in bare


def test_nobody_may_rely_on_what_is_not_recommended():
    assert reliance(())[2].may == "Nothing: no method is recommended."
    assert "lime" in reliance(("lime",))[0].may


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None or COUNTER is None, reason="apt-get install chromium poppler-utils to run this")
def test_a_full_record_prints_on_two_pages(tmp_path):
    assert CHROMIUM is not None
    assert COUNTER is not None
    summary, _ = fake((*METHODS, *(f"lime:samples={k}" for k in range(9, 18))), METRICS)
    files = {f"file-{k}.json": "c" * 64 for k in range(5)}
    corpora = tuple(replace(corpus, sha256="a" * 64) for corpus in summary.corpora)
    stamp = {**summary.stamp, "code": "d" * 64, "command": "veridical audit " + "--ood some/corpus " * 9}
    summary = replace(summary, model=replace(summary.model, hash="b" * 16, files=files), corpora=corpora, stamp=stamp)
    record = record_of(summary, [evidence()], limits(summary), "Why it was made, at some length. " * 4)
    full = replace(record, since=since(record, replace(record, evidence=(evidence(wrong=14, shift=-0.3),))))
    (tmp_path / "record.html").write_text(record_page(full), encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    command += ["--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}"]
    command += [f"--print-to-pdf={tmp_path / 'record.pdf'}", (tmp_path / "record.html").as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    counted = subprocess.run([COUNTER, str(tmp_path / "record.pdf")], check=True, capture_output=True, text=True)
    assert "Pages:           2\n" in counted.stdout
