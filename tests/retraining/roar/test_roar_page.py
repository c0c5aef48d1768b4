"""The summary and the page, from made-up points."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from made_up import EVEN, GOOD, LEAKY, made_up
from markupsafe import escape
from typer.testing import CliRunner

from toy import small_model, toy
from veridical.cli.app import app
from veridical.core import store
from veridical.retraining.roar.mask import Steps
from veridical.retraining.roar.page import clock, percent, roar_page, roar_section
from veridical.retraining.roar.record import (
    LeakageChecks,
    RoarSummary,
    TimeSpent,
    Trainings,
    read_summary,
    read_time,
)
from veridical.retraining.roar.summary import write_summary

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roar")
    request = made_up(folder)
    return folder, request, write_summary(folder, request)


def read_all(folder: Path) -> tuple[RoarSummary, TimeSpent, dict[str, Any]]:
    return read_summary(folder), read_time(folder), store.read_json(folder / "stamp.json")


def test_verdicts_of_five_seeds(done):
    _, _, summary = done
    areas = {(area.measure, area.recursive): area for area in summary.areas}
    assert areas[(GOOD, True)].verdict == "significantly below random"
    assert areas[(LEAKY, True)].verdict == "above: possible class leakage"
    assert areas[(GOOD, True)].low < areas[(GOOD, True)].mean < areas[(GOOD, True)].high
    assert [area.measure for area in summary.areas if area.recursive] == [GOOD, EVEN, LEAKY]
    assert summary.answer.startswith("Masking what attention (")
    assert "input_x_gradient (−" in summary.answer
    gaps = [gap for gap in summary.points if gap.measure == GOOD and gap.recursive]
    assert [gap.masked for gap in gaps] == list(range(10, 100, 10))
    assert all(gap.side == "below" for gap in gaps)
    assert summary.trainings == Trainings(done=5 * (2 + 9 * 7), of=5 * (2 + 9 * 7))


def test_the_curve_and_the_area_are_of_the_same_seeds_points(done):
    folder, _, summary = done
    rows = store.read_parquet(folder / "curves.parquet").to_pylist()
    curve = next(c for c in summary.curves if c.measure == GOOD and c.recursive)
    for seed, values in curve.values.items():
        scores = [r["macro_f1"] for r in rows if r["measure"] == GOOD and r["recursive"] and r["seed"] == int(seed)]
        assert list(values) == scores
    area = next(area for area in summary.areas if area.measure == GOOD and area.recursive)
    assert len(area.values) == area.n == 5


def test_leakage_is_where_a_curve_lies_furthest_above_random(done):
    _, _, summary = done
    leaks = [leak for leak in summary.leakage if leak.measure == LEAKY and leak.recursive]
    assert [leak.seed for leak in leaks] == [0, 1, 2, 3, 4]
    for leak in leaks:
        curves = {c.measure: c.values[str(leak.seed)] for c in summary.curves if c.recursive}
        floor = next(c for c in summary.curves if c.measure == "random").values[str(leak.seed)]
        gaps = [a - b for a, b in zip(curves[LEAKY], floor, strict=True)]
        assert leak.above_random == max(gaps)
        assert leak.masked == 10 * gaps.index(max(gaps))
        assert (leak.positions_alone, leak.everything_masked) == (0.8, 0.5)


def test_what_was_checked_for_leakage_is_said(tmp_path):
    request = made_up(tmp_path, seeds=1, kinds=(True,))
    request = replace(request, measures=(GOOD,))
    page = tmp_path / "report.html"
    assert write_summary(tmp_path, request).leakage_checks == LeakageChecks(asked=True, done=1, of=1)
    assert "No curve lies above random anywhere" in page.read_text()
    summary = write_summary(tmp_path, replace(request, leakage=False))
    assert (summary.leakage, summary.leakage_checks.asked) == ((), False)
    assert "--no-leakage" in page.read_text()
    for path in list(tmp_path.rglob("p*-positions")):
        shutil.rmtree(path)
    summary = write_summary(tmp_path, replace(request, measures=(GOOD, LEAKY)))
    assert summary.leakage_checks == LeakageChecks(asked=True, done=1, of=2)
    assert "1 of 2 curves looked at so far" in page.read_text()


def test_time_has_the_leakage_checks_and_no_explanation_that_is_half_done(done, tmp_path):
    folder, request, _ = done
    time = read_time(folder)
    (checks,) = [row for row in time.rows if row.measure == "leakage checks"]
    above = len(read_summary(folder).leakage)
    assert above >= 5
    assert checks.trainings == above
    assert time.seconds == pytest.approx(sum(row.seconds for row in time.rows))
    shutil.copytree(folder, tmp_path / "copy")
    (first, *_) = sorted((tmp_path / "copy").glob("seed0/attention*/order/test/part-0000.parquet"))
    first.unlink()  # the folder is there before its part is: another worker is about to write it
    write_summary(tmp_path / "copy", request)
    counts = {
        where: {row.measure: row.explanations for row in read_time(where).rows[:3]}
        for where in (folder, tmp_path / "copy")
    }
    assert counts[tmp_path / "copy"] == {**counts[folder], GOOD: counts[folder][GOOD] - 1}


def test_intervals_may_be_students(done):
    folder, request, summary = done
    bca = next(area for area in summary.areas if area.measure == GOOD)
    t = next(area for area in write_summary(folder, replace(request, interval="t")).areas if area.measure == GOOD)
    write_summary(folder, request)
    assert t.mean == bca.mean
    assert t.high is not None
    assert t.low is not None
    assert t.high - t.low > bca.high - bca.low


def test_what_is_not_there_yet_is_said(tmp_path):
    request = made_up(tmp_path, seeds=2, kinds=(True,), until=60)
    summary = write_summary(tmp_path, request)
    assert summary.answer == "No curve is whole yet: 52 of 76 trainings are done."
    curve = next(c for c in summary.curves if c.measure == GOOD)
    assert [v is None for v in curve.mean] == [False] * 7 + [True] * 3 + [False]
    page = (tmp_path / "report.html").read_text()
    assert "52 of 76 trainings are" in page
    assert "undefined" not in page
    coarse = write_summary(tmp_path, replace(request, steps=Steps(50)))
    assert coarse.settings.amounts == (0, 50, 100)


def test_the_page_is_whole_and_runs_nothing(done):
    folder, _, _ = done
    page = roar_page(*read_all(folder))
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)
    for anchor in re.findall(r'href="#([\w-]+)"', page):
        assert f'id="{anchor}"' in page, anchor
    assert page.count("<figure>") == 3 + 2 * 3
    assert "not distinguishable" in page


def test_names_are_escaped(done):
    folder, _, _ = done
    summary, spent, stamp = read_all(folder)
    bad = "<script>alert(1)</script>"
    page = roar_page(replace(summary, title=bad, data=replace(summary.data, name=bad)), spent, stamp)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_its_sections_fit_another_page(done):
    folder, _, _ = done
    section = roar_section(*read_all(folder)[:2])
    assert section.startswith("<style>")
    assert "<html" not in section
    assert section.count("<section") == section.count("</section>") == 6


@pytest.mark.parametrize(("seconds", "said"), [(None, "–"), (3.14, "3.1 s"), (61.5, "0:01:02"), (3725, "1:02:05")])
def test_times(seconds, said):
    assert clock(seconds) == said


def test_areas_are_said_in_per_cent():
    assert (percent(0.665), percent(-0.279), percent(None)) == ("66.5", "−27.9", "–")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed; apt-get install chromium to run this")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(done, tmp_path, width):
    """No complaint on the console, and nothing but what scrolls by itself is wider than the window."""
    folder, _, _ = done
    text = (folder / "report.html").read_text()
    look = "document.body.dataset.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth"
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)  # the page allows no script
    page = tmp_path / "report.html"
    page.write_text(text.replace("</body>", f"<script>{look}</script></body>"))
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"]
    command += [
        f"--user-data-dir={tmp_path / 'profile'}",
        "--enable-logging=stderr",
        "--v=0",
        "--dump-dom",
        page.as_uri(),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert not [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
    assert 'data-wide="0"' in ran.stdout


def test_an_audit_shows_it_as_a_section(done, tmp_path):
    folder, _, summary = done
    small_model(tmp_path / "model", initializer_range=0.3)
    (tmp_path / "data").mkdir()
    rows = [json.dumps({"id": e.id, "text": e.text, "label": e.label}) for e in toy().splits["test"]]
    (tmp_path / "data" / "test.jsonl").write_text("\n".join(rows))
    data, audit = ["--data", str(tmp_path / "data"), "--limit", "6"], str(tmp_path / "audit")
    few = ["--method", "attention,gradient", "--metric", "sufficiency", "--out", audit]

    def verb(*words: str) -> Result:
        return CliRunner().invoke(app, list(words))

    assert verb("audit", str(tmp_path / "model"), *data, *few).exit_code == 0
    page = tmp_path / "audit" / "report.html"
    assert 'id="roar"' not in page.read_text()
    refused = verb("report", audit, "--roar", str(tmp_path / "data"))
    assert refused.exit_code == 2
    assert refused.stderr.strip().endswith("has no summary.json; name a folder that `veridical roar` wrote.")
    assert 'id="roar"' not in page.read_text()
    assert verb("report", audit, "--roar", str(folder)).exit_code == 0
    shown = page.read_text()
    assert 'href="#roar"' in shown
    assert str(escape(summary.answer)) in shown
    assert "The area between" in shown
    assert verb("report", audit).exit_code == 0  # what was put there once stays
    assert page.read_text() == shown
