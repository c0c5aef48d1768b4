"""Judging, error rates, the choice of a panel and the page, from made-up scores; and the whole verb on tiny worlds."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import veridical
from veridical.audits import plan as planning
from veridical.audits.conclusion import conclude
from veridical.audits.corpora import Corpus
from veridical.audits.looks import PART, Asked, follow, sheet_of, wins_of
from veridical.audits.options import AuditOptions
from veridical.audits.plan import ORDERS, entering_late
from veridical.audits.selection import metric_facts
from veridical.audits.sequential import Rule
from veridical.cli.app import app
from veridical.core import store, stored
from veridical.core.records import Cell, Example, Score
from veridical.probes.options import ValidateOptions
from veridical.probes.validation.finished import Validation
from veridical.probes.validation.judging import Scores, Verdict, net, verdict
from veridical.probes.validation.making import Facts
from veridical.probes.validation.page import rate, validation_page
from veridical.probes.validation.panels import HARD, Panel, panels
from veridical.probes.validation.rates import exact, over_worlds
from veridical.probes.validation.record import PanelErrors, Rate, ValidationSummary
from veridical.probes.validation.summary import Judged, Request, least, panel_errors, sum_up, verdict_rows, write
from veridical.probes.validation.validate import setting_of
from veridical.probes.validation.world import World

NAMES = ("true", "near", "poor", "noise")
HARD_DELETE = Panel("hard", "delete", HARD)
FACTS = Facts(
    world=World("single", 1, 0.0, 0, "bilstm"),
    learnt=True,
    epochs=1,
    dev=1.0,
    test=1.0,
    texts=96,
    carried=48,
    by_shortcut=0,
    passes={"true": 1.0, "near": 3.0, "poor": 1.0, "noise": 300.0},
    left_out=(),
)


def scores(strength: tuple[float, ...], metrics: tuple[str, ...] = HARD, texts: int = 96) -> Scores:
    """Methods whose scores lie so far above those of random orders, with noise; decision_flip is better when lower."""
    draw = np.random.default_rng(0)
    noise = draw.normal(size=(len(NAMES) + 3, len(metrics), texts))
    sign = np.array([-1.0 if metric.startswith("decision_flip") else 1.0 for metric in metrics])
    values = sign[None, :, None] * (noise + np.array([*strength, 0, 0, 0])[:, None, None])
    return Scores(
        facts=FACTS,
        metrics=metrics,
        values=values[:4],
        orders=values[4:],
        shuffled=np.full_like(values[:4], np.nan),
        truth={"true": 0.9, "near": 0.8, "poor": 0.5, "noise": 0.1},
        needed={"true": 0.9, "near": 0.5, "poor": 0.85, "noise": 0.1},
        dear_texts=48,
    )


# -- a verdict ----------------------------------------------------------------------------------------------


def test_a_method_within_a_tenth_of_the_truest_is_good():
    assert scores((0, 0, 0, 0)).good == ("true", "near")
    assert scores((0, 0, 0, 0)).good_by_need == ("true", "poor")


def test_the_rule_is_applied_to_the_stored_scores():
    said = verdict(scores((3, 1, 1, 0)), HARD_DELETE, Rule())
    assert said.believed == "true"
    assert {said.lists[name] for name in ("near", "poor", "noise")} <= {"behind", "chance"}
    silent = verdict(scores((0, 0, 0, 0)), HARD_DELETE, Rule())
    assert silent.believed == ""
    assert silent.on("open", NAMES) + silent.on("chance", NAMES) == 4
    wrong = verdict(scores((0, 0, 3, 0)), HARD_DELETE, Rule())
    assert wrong.believed == "poor"
    assert wrong.lists["true"] in ("behind", "chance")


def test_costly_methods_enter_late_and_integrated_gradients_does_not():
    costs = {"lime": 300.0, "integrated_gradients:steps=50": 152.0, "attention": 1.0}
    assert entering_late(Rule(), costs) == {"lime"}
    assert verdict(scores((0, 0, 0, 5)), HARD_DELETE, Rule()).believed == "noise"  # on 48 texts


def test_where_all_methods_are_costly_they_begin_together():
    held = scores((3, 1, 1, 0))
    held = replace(held, facts=replace(FACTS, passes=dict.fromkeys(NAMES, 300.0)))
    assert verdict(held, HARD_DELETE, Rule()).believed == "true"


@pytest.mark.parametrize("strength", [(3, 1, 1, 0), (1, 1, 0, 1), (0, 0, 0, 5), (2, 2, -1, 2)])
@pytest.mark.parametrize("texts", [96, 60, 48])
def test_a_verdict_is_that_of_an_audit_with_the_same_answers(strength, texts):
    """By its looks, late methods, costs and levels."""
    held = scores(strength, texts=texts)
    held = replace(held, facts=replace(FACTS, texts=texts))
    names: list[str] = [*NAMES, *ORDERS]
    rows = dict(zip(names, [*held.values, *held.orders], strict=True))

    def ask(parts: Mapping[int, Sequence[str]]) -> Asked:
        cells = {
            (number, name): [
                Cell("home", f"t{text}", name, metric, Score(float(rows[name][k, text])))
                for text in range(number * PART, (number + 1) * PART)
                for k, metric in enumerate(HARD)
            ]
            for number, names in parts.items()
            for name in names
        }
        return Asked(cells, {key: [None] * PART for key in cells})  # type: ignore[dict-item]

    plan = planning.plan(planning.rule_of(AuditOptions("m", "d", out="o"), texts), FACTS.passes, 1.0, None)
    corpus = Corpus("home", "in", tuple(Example(f"t{text}", f"t{text}") for text in range(texts)), 0)
    metrics = {name: metric_facts(name) for name in HARD}
    course = follow(corpus, plan, metrics, ask)
    wins, chance = wins_of(sheet_of(course, HARD), plan.methods, metrics, course.units)
    audited = conclude(plan.rule, course.state, wins, chance, [FACTS.passes[name] for name in plan.methods])
    said = verdict(held, HARD_DELETE, Rule())
    assert said.lists == {standing.method: standing.list for standing in audited.standings}
    assert said.texts == course.texts


def test_a_panel_of_dear_metrics_has_the_first_texts_only():
    held = scores((3, 0, 0, 0), ("soft_sufficiency", "monotonicity"))
    held.values[:, :, 48:] = np.nan
    dear = verdict(held, Panel("soft", "", ("soft_sufficiency",)), Rule())
    assert dear.texts <= 48
    assert dear.believed == "true"


def test_a_panel_with_other_metrics_goes_on_without_the_dear_ones():
    held = scores((3, 2.7, 0, 0), ("sufficiency", "soft_sufficiency"))
    held.values[:, 1, 48:] = np.nan
    assert verdict(held, Panel("both", "", ("sufficiency", "soft_sufficiency")), Rule()).texts == 96


def test_of_equals_the_cheaper_is_believed():
    held = scores((3, 3, 0, 0))
    held.values[1] = held.values[0]
    assert verdict(held, HARD_DELETE, Rule()).believed == "true"  # a pass a text, where `near` takes three


def test_chance_is_random_orders_or_where_shapes_count_the_own_shuffle():
    held = scores((0, 0, 0, 0), ("sufficiency", "soft_sufficiency"))
    held.values[:], held.orders[:] = 1.0, 0.0
    shuffled = held.shuffled.copy()
    shuffled[:, 1] = 2.0
    held = replace(held, shuffled=shuffled)
    for metrics, expected in ((("sufficiency",), 1.0), (("soft_sufficiency",), -1.0), (held.metrics, 0.0)):
        wins, chance = net(held, Panel("p", "", metrics), 48)
        assert (chance == expected).all()
        assert chance.shape == (4, 48)
        assert (wins == 0).all()


# -- rates --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "of", "low", "high"), [(0, 60, 0.0, 0.0596), (2, 10, 0.0252, 0.5561), (10, 10, 0.6915, 1.0)]
)
def test_exact_intervals(count: int, of: int, low: float, high: float):
    got = exact(count, of)
    assert (got.low, got.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
    assert got.share == count / of


def test_of_nothing_there_is_no_rate():
    assert exact(0, 0) == Rate(0, 0, None, None, None)
    assert over_worlds([], []) == Rate(0, 0, None, None, None)
    assert rate(exact(0, 0)) == "–"


def test_methods_of_a_world_stand_and_fall_together():
    alike = over_worlds([1] * 5 + [0] * 45, [1] * 50)
    lumped = over_worlds([5] * 1 + [0] * 9, [5] * 10)  # the same share, in one world
    assert alike.share == lumped.share == 0.1
    assert alike.high is not None
    assert lumped.high is not None
    assert lumped.high > alike.high
    assert over_worlds([0] * 60, [8] * 60) == Rate(0, 480, 0.0, None, None)


# -- errors, and the choice ---------------------------------------------------------------------------------


def world(seed: int, said: dict[str, str], *, label: str = "hard, delete") -> Judged:
    """A world in which one panel put each method on a list."""
    panel = next(panel for panel in panels() if panel.label == label)
    believed = next((name for name, where in said.items() if where == "believe"), "")
    facts = replace(FACTS, world=replace(FACTS.world, seed=seed))
    lists: dict[str, Any] = {name: said.get(name, "open") for name in NAMES}
    truth = {"true": 0.9, "near": 0.85, "poor": 0.5, "noise": 0.1}
    verdicts = {each.label: Verdict(each, "", dict.fromkeys(NAMES, "open"), 96) for each in panels()}
    verdicts[label] = Verdict(panel, believed, lists, 48)
    return Judged(facts, "", truth, ("true", "near"), ("true", "poor"), verdicts)


def errors(worlds: list[Judged]) -> PanelErrors:
    rows = [row for row in verdict_rows(worlds, ()) if row.panel == HARD_DELETE.label]
    return panel_errors(HARD_DELETE, rows)


def test_what_counts_as_an_error():
    worlds = [
        world(0, {"true": "believe", "near": "behind", "poor": "behind", "noise": "chance"}),
        world(1, {"poor": "believe", "near": "chance", "true": "chance"}),
        world(2, {"near": "chance"}),
    ]
    row = errors(worlds)
    assert (row.worlds, row.silent, row.texts) == (3, 1, 48)
    assert (row.wrong.count, row.wrong.of) == (1, 2)
    assert (row.wrong_by_need.count, row.wrong_by_need.of) == (0, 2)
    assert (row.banned.count, row.banned.of) == (3, 6)
    assert (row.banned_worlds.count, row.banned_worlds.of) == (2, 3)
    assert (row.behind.count, row.behind.of) == (1, 6)
    assert (row.caught.count, row.caught.of) == (2, 6)


def test_the_panel_that_errs_least_is_taken_and_silence_is_no_merit():
    right, wrong = {"true": "believe"}, {"poor": "believe"}
    often = errors([world(n, wrong if n == 0 else right) for n in range(40)])
    seldom = replace(errors([world(n, right if n < 5 else {}) for n in range(40)]), panel="never wrong in five")
    assert (often.wrong.count, seldom.wrong.count) == (1, 0)
    assert least([seldom, often]) == "hard, delete"
    banning = replace(often, panel="bans", banned=Rate(1, 80, 1 / 80, None, None))
    assert least([banning, often]) == "hard, delete"
    catching = replace(often, panel="catches", caught=Rate(9, 10, 0.9, None, None))
    assert least([often, catching]) == "catches, delete"
    assert least([errors([world(0, {})])]) == ""
    easy = replace(errors([world(n, right) for n in range(30)]), panel="asked in half of the worlds")
    assert easy.wrong.high < often.wrong.high
    assert least([easy, often]) == "hard, delete"


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    setting = setting_of(ValidateOptions(out=tmp_path, methods="attention"))
    setting.write(tmp_path)
    return Request(setting, (0, 1), (5, 6), 48, Rule())


def test_the_error_is_that_of_fresh_worlds(request_: Request, tmp_path: Path):
    unlearnt = Judged(
        replace(FACTS, learnt=False, dev=0.5), "not learnt: dev accuracy 0.500 after 30 epochs", {}, (), (), {}
    )
    label = "sufficiency, mask"
    first = [world(seed, {"true": "believe", "poor": "behind"}, label=label) for seed in (0, 1)]
    fresh = [world(5, {"poor": "believe", "near": "chance"}, label=label), world(6, {}, label=label)]
    worlds = [*first, *fresh, unlearnt]
    summary = sum_up(request_, worlds)
    assert summary.chosen == summary.reported == label
    errors = summary.errors(label, fresh=True)
    assert errors is not None
    assert (errors.wrong.count, errors.wrong.of, errors.silent) == (1, 1, 1)
    assert summary.answer.startswith("In 1 world with a known truth the verdict was wrong in 1 (95% interval 2.5% to ")
    assert summary.answer.endswith("Judged by sufficiency, mask.")
    assert "in 1 nothing was believed" in summary.answer
    assert "told not to be used: 1 of 4" in summary.answer
    assert [row.right for row in summary.worlds] == [True, True, False, None, None]
    assert [row.right_by_need for row in summary.worlds] == [True, True, True, None, None]
    assert "that the model needs, in 0 (95% interval 0.0% to " in summary.answer
    assert summary.worlds[-1].skipped.startswith("not learnt")
    assert next(row for row in summary.methods if row.method == "poor").believed == 1
    write(tmp_path, summary, worlds)
    assert stored.read(tmp_path / "summary.json", ValidationSummary) == summary
    assert (tmp_path / "tables" / "panels.csv").read_text().count("\n") == 1 + 2 * len(panels())
    lines = list(csv.DictReader((tmp_path / "tables" / "verdicts.csv").open()))
    assert len(lines) == 4 * len(panels())  # of counted worlds
    told = [line for line in lines if line["panel"] == label and line["believed"]]
    assert [(line["fresh"], line["right"], line["right_by_need"]) for line in told] == [
        ("False", "True", "True"),
        ("False", "True", "True"),
        ("True", "False", "True"),
    ]


def test_it_prints_displays_plots_and_becomes_a_table(request_: Request, tmp_path: Path):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    found = Validation(tmp_path, sum_up(request_, [world(0, {"true": "believe"}), world(5, {"poor": "believe"})]))
    assert " ".join(repr(found).split()).startswith(" ".join(found.summary.answer.split()))
    assert repr(found).endswith(f"report {found.page}")
    assert f'href="{found.page.as_posix()}"' in found._repr_html_()
    frame = found.to_pandas()
    assert list(frame) == list(Validation.COLUMNS)
    assert frame.believed.tolist() == ["true", "poor"]
    assert found.to_dataset()["good"][0] == ["true", "near"]
    labels = [label.get_text() for label in found.plot().get_yticklabels()]
    assert labels == [row.label for row in found.summary.first]
    pyplot.close("all")


def test_without_fresh_worlds_the_sentence_says_who_chose(request_: Request):
    summary = sum_up(request_, [world(0, {"true": "believe"})])
    assert "which also chose the panel," in summary.answer
    assert sum_up(request_, []).answer == "No world is judged yet in which a method was believed."


def test_fresh_worlds_alone_are_told_by_the_panel_that_their_metrics_make(tmp_path: Path):
    setting = setting_of(ValidateOptions(out=tmp_path, methods="attention", metrics=HARD))
    request = Request(setting, (), (5, 6), 2, Rule())
    summary = sum_up(request, [world(5, {"true": "believe"}), world(6, {"poor": "believe"})])
    assert (summary.chosen, summary.reported) == ("", "hard, delete")
    assert summary.answer.startswith("In 2 worlds with a known truth the verdict was wrong in 1 ")
    assert {row.label for row in summary.fresh} == {"hard, delete", *(f"{name}, delete" for name in HARD)}


def test_the_page_is_whole_and_escapes_what_it_shows(request_: Request, tmp_path: Path):
    hostile = "<script>alert(1)</script>"
    judged = world(5, {"true": "believe"})
    judged = replace(judged, facts=replace(judged.facts, world=replace(judged.facts.world, model=hostile)))
    summary = sum_up(request_, [world(0, {"true": "believe"}), judged])
    page = validation_page(summary, store.read_json(tmp_path / "stamp.json"))
    assert hostile not in page
    assert "&lt;script&gt;" in page
    assert summary.answer in page
    assert not re.search(r"(src|href)=\"(?!#|data:)", page)


# -- the verb -----------------------------------------------------------------------------------------------


def test_the_verb_makes_worlds_judges_them_and_takes_more_seeds(tmp_path: Path):
    words = [
        *("validate", "--model", "bilstm:hidden=16:embedding=16", "--rule", "single", "--copies", "1"),
        *("--shortcut", "0", "--method", "attention,occlusion", "--texts", "16", "--dear-texts", "16", "--size", "300"),
        *("--learnt", "0.8", "--workers", "1", "--out", str(tmp_path / "v"), "--json"),
    ]
    ended = CliRunner().invoke(app, [*words, "--seed", "0", "--fresh", "none"])
    assert ended.exit_code == 0, ended.output
    summary = json.loads(ended.stdout)
    assert (summary["asked"], summary["made"]) == (1, 1)
    assert (tmp_path / "v" / "report.html").exists()
    marks = {path: path.stat().st_mtime_ns for path in (tmp_path / "v" / "worlds").rglob("*.parquet")}
    result = veridical.validate(
        out=tmp_path / "v",
        seeds=(0,),
        fresh=(1,),
        models="bilstm:hidden=16:embedding=16",
        rules=("single",),
        copies=(1,),
        shortcuts=(0.0,),
        methods="attention,occlusion",
        texts=16,
        dear_texts=16,
        size=300,
        learnt=0.8,
        workers=1,
        progress=False,
    )
    assert result.summary.made == 2
    assert [row.fresh for row in result.summary.worlds] == [False, True]
    assert {path: path.stat().st_mtime_ns for path in marks} == marks  # what was made is not made again
