"""From cells to the summary: shapes, counts, and the sections agreeing with one another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit_facts import a_corpus, a_metric, facts

from veridical.audits.sheet import gather
from veridical.audits.summary import summarise
from veridical.core.errors import InputError
from veridical.core.records import Cell, Score
from veridical.core.seed import generator

RATIOS = (0.1, 0.5)
METHODS = ("good", "fair", "poor", "random")
STRENGTH = {"good": 0.5, "fair": 0.25, "poor": 0.0, "random": 0.0, "oracle": 0.7, "inverted oracle": -0.3}


METRICS = [
    a_metric("up", ratios=RATIOS),
    a_metric("down", better="lower"),
    a_metric("blind"),
    a_metric("auc", "plausibility"),
    a_metric("agreement", "agreement"),
    a_metric("jaccard", "agreement"),
    a_metric("sparsity", "shape", ratios=RATIOS),
]
CORPORA = [a_corpus("home", texts=60), a_corpus("away", "ood", texts=20)]
TABLES = (
    *("cells", "diagnosticity", "metric_tests", "metric_tests_by_method", "comparisons", "ranking", "verdicts"),
    *("agreement", "sparsity"),
)
HOME = facts(CORPORA[:1], METRICS)


def cells_of(corpus, texts, methods=METHODS, strength=STRENGTH):
    """`up` and `down` see a method's strength, `blind` does not; text 0 is undefined for `up`."""
    draw = generator("cells", corpus)
    found = []
    for text in range(texts):
        base = draw.random()
        for control in ("", "permutation"):
            for method in methods:
                s = 0.0 if control else strength[method]
                up = 0.3 * base + 0.5 * draw.random() + s
                curve = (up / 2, up * 2) if text else (None, None)
                values = {
                    "up": Score(up if text else None, curve),
                    "down": Score(0.3 * base + 0.5 * draw.random() - s, error=0.1),
                    "blind": Score(draw.random()),
                }
                if not control:
                    values |= {"auc": Score(draw.random()), "sparsity": Score(0.5, (0.4, 0.6))}
                found += [Cell(corpus, f"t{text}", method, metric, score, control) for metric, score in values.items()]
        for i, a in enumerate(methods):
            for b in methods[i + 1 :]:
                found.append(Cell(corpus, f"t{text}", f"{a} ~ {b}", "agreement", Score(0.2 if text else None)))
                found.append(Cell(corpus, f"t{text}", f"{a} ~ {b}", "jaccard", Score(0.5)))
    return found


@pytest.fixture(scope="module")
def summary():
    worse_away = {**STRENGTH, "good": 0.25, "fair": 0.5}
    cells = [*cells_of("home", 60), *cells_of("away", 20, strength=worse_away)]
    return summarise(cells, facts(CORPORA, METRICS))


def only(rows, **wanted):
    [row] = [row for row in rows if all(getattr(row, key) == value for key, value in wanted.items())]
    return row


def test_every_table_has_rows_of_every_corpus(summary):
    given = facts(CORPORA, METRICS)
    assert replace(summary, **dict.fromkeys(TABLES, ()), truth=()) == given  # the facts are kept as they were
    assert summary.truth == ()  # no oracle was scored
    for name in TABLES:
        assert {row.corpus for row in getattr(summary, name)} == {"home", "away"}, name


def test_undefined_values_are_counted_and_left_out(summary):
    row = only(summary.cells, corpus="home", method="good", metric="up")
    assert (row.n, row.undefined) == (59, 1)
    assert row.low < row.mean < row.high
    assert row.curve == pytest.approx([row.mean / 2, row.mean * 2])
    assert row.curve_low == pytest.approx([row.low / 2, row.low * 2])
    assert row.sampling_error is None
    note = next(n for n in summary.verdicts[0].notes if "undefined" in n)
    assert "up on 1 of 60" in note


def test_texts_that_are_divided_by_little_are_counted_and_said():
    rooms = [0.02, 0.0999, 0.1, 0.5, 0.9, None]  # the last is of a file from before rooms were kept
    cells = [
        Cell("home", f"t{i}", method, "soft", Score(0.5, error=0.2, room=room))
        for i, room in enumerate(rooms)
        for method in ("good", "fair")
    ]
    cells += [Cell("home", f"t{i}", method, "up", Score(0.5)) for i in range(6) for method in ("good", "fair")]
    cells += [Cell("home", "t9", method, "soft", Score(None, room=1e-7)) for method in ("good", "fair")]
    found = summarise(cells, facts(CORPORA[:1], [a_metric("soft"), a_metric("up")]))
    row = only(found.cells, method="good", metric="soft")
    assert (row.n, row.undefined, row.small) == (6, 1, 2)  # what is undefined is not counted twice
    assert only(found.cells, method="good", metric="up").small is None
    (note,) = [n for n in found.verdicts[0].notes if "D below 0.1" in n]
    assert "soft on 2 of 6" in note
    assert "up on" not in note


def test_sampling_errors_add_in_squares(summary):
    row = only(summary.cells, corpus="away", method="fair", metric="down")
    assert row.sampling_error == pytest.approx(0.1 / np.sqrt(20))


def test_a_metric_that_sees_nothing_has_no_weight(summary):
    weights = summary.verdicts[0].weights
    assert set(weights) == {"up", "down", "blind"}
    assert weights["up"] > 0.3
    assert weights["down"] > 0.3  # lower is better there
    assert weights["blind"] == 0
    row = only(summary.diagnosticity, corpus="home", metric="down", method="")
    assert row.control == "permutation"
    assert row.weight == weights["down"]
    assert 0.3 < only(summary.diagnosticity, corpus="home", metric="down", method="random").value < 0.7
    assert len(only(summary.diagnosticity, corpus="home", metric="up", method="good").curve) == 2
    assert any("without weight: blind." in note for note in summary.verdicts[0].notes)


def test_metrics_are_tested_against_each_other(summary):
    row = only(summary.metric_tests, corpus="home", a="up", b="blind")
    assert row.p_holm < 0.01
    assert row.effect > 0
    assert len([r for r in summary.metric_tests if r.corpus == "home"]) == 3
    assert {r.method for r in summary.metric_tests_by_method} == {"good", "fair", "poor"}


def test_the_verdict_follows_the_scores(summary):
    home, away = summary.verdicts
    assert home.believe == ("good",)
    assert home.avoid == ("poor",)
    assert home.enough
    assert "believe good" in home.sentence
    assert [row.method for row in summary.ranking if row.corpus == "home"][:2] == ["good", "fair"]
    assert any(note.startswith("On home good ranks first; here fair does") for note in away.notes)


def test_comparisons_are_per_metric_and_overall(summary):
    metrics = {row.metric for row in summary.comparisons}
    assert metrics == {"", "up", "down", "blind", "auc"}
    row = only(summary.comparisons, corpus="home", metric="down", a="good", b="poor")
    assert row.difference < 0 < row.effect  # lower and better
    assert row.distinguishable
    blind = [row for row in summary.comparisons if row.metric == "blind" and row.corpus == "home"]
    assert len(blind) == 6
    assert not any(row.distinguishable for row in blind)


def test_agreement_and_sparsity(summary):
    row = only(summary.agreement, corpus="home", a="good", b="random")
    assert (row.tau, row.jaccard, row.n) == (pytest.approx(0.2), 0.5, 60)
    assert len([r for r in summary.agreement if r.corpus == "home"]) == 6
    row = only(summary.sparsity, corpus="home", method="fair")
    assert row.shares == RATIOS
    assert row.mass == pytest.approx([0.4, 0.6])


def test_truth_shows_how_metrics_rank_the_oracle():
    methods = (*METHODS, "oracle", "inverted oracle")
    found = summarise(cells_of("home", 40, methods), HOME)
    up, blind = (only(found.truth, metric=name) for name in ("up", "blind"))
    assert up.order[0] == "oracle"
    assert up.order[-1] == "inverted oracle"
    assert list(up.values) == sorted(up.values, reverse=True)
    assert up.holds
    assert up.margin_oracle_random > 0.5
    assert up.p_random_inverted < 0.01
    down = only(found.truth, metric="down")
    assert list(down.values) == sorted(down.values)
    assert down.holds
    assert blind.margin_oracle_random < 0.3
    # Known truth is a yardstick, not a method one could use.
    assert not {"oracle", "inverted oracle"} & {row.method for row in found.ranking}
    pooled = only(found.diagnosticity, metric="up", method="")
    assert pooled.pairs == 3 * 39


def test_without_controls_every_metric_counts_alike():
    cells = [cell for cell in cells_of("home", 40) if not cell.control]
    found = summarise(cells, HOME)
    said = found.verdicts[0]
    assert found.diagnosticity == found.metric_tests == ()
    assert said.weights == {"up": 1.0, "down": 1.0, "blind": 1.0}
    assert "No random explanations were scored in their place, so every metric counts alike." in said.notes
    assert all(row.beats_control is None for row in found.ranking)
    assert "good" in said.believe


def test_the_permutation_decides_where_there_are_two_controls():
    plain = cells_of("home", 30)
    easy = [replace(c, control="gaussian", score=Score(-9.0, (-9.0, -9.0))) for c in plain if c.control]
    found = summarise([*easy, *plain], HOME)
    alone = summarise(plain, HOME)
    assert found.verdicts == alone.verdicts
    assert found.metric_tests == alone.metric_tests
    assert only(found.diagnosticity, metric="blind", method="", control="gaussian").value == 1.0
    assert only(found.diagnosticity, metric="down", method="", control="gaussian").value == 0.0


def test_a_metric_that_asks_what_a_method_asks_has_no_say():
    crowning = [replace(m, repeats=("good",)) if m.name == "down" else m for m in METRICS]
    found = summarise(cells_of("home", 40), facts(CORPORA[:1], crowning))
    said = found.verdicts[0]
    assert set(said.weights) == {"up", "blind"}
    assert "down asks the model what good asks it, so it has no say in the ranking." in said.notes
    assert only(found.diagnosticity, metric="down", method="").value > 0.5  # still measured


def test_metrics_at_odds_are_named():
    cells = []
    draw = generator("odds")
    for text in range(40):
        for method, (one, two) in {"a": (3, 1), "b": (2, 2), "c": (1, 3), "random": (0.5, 0.5)}.items():
            for control in ("", "permutation"):
                for metric, strength in (("up", one), ("blind", two)):
                    value = draw.random() + (0 if control else strength)
                    cells.append(Cell("home", f"t{text}", method, metric, Score(value), control))
    found = summarise(cells, HOME)
    assert found.verdicts[0].notes[-1] == ("up and blind order the methods against each other (Kendall's tau -1.00).")


def test_the_result_depends_on_the_cells_not_on_their_order(summary):
    cells = cells_of("home", 60)
    turned = sorted(cells, key=lambda c: (c.control, c.metric, c.method != "good", c.example))
    one, two = (summarise(c, HOME) for c in (cells, turned))
    assert one.ranking[0].method == two.ranking[0].method == "good"
    assert one.verdicts[0].sentence == two.verdicts[0].sentence
    for row in one.ranking:
        assert only(two.ranking, method=row.method).mean_rank == pytest.approx(row.mean_rank)


def test_two_scores_of_one_thing_are_refused():
    cell = Cell("home", "t1", "good", "up", Score(0.5))
    with pytest.raises(InputError, match="two scores of good by up on text 't1'"):
        gather([cell, cell], "home", ["up"])


def test_curves_of_two_lengths_are_a_mistake():
    cells = [Cell("home", f"t{i}", "good", "up", Score(0.5, (0.1,) * (i + 1))) for i in range(2)]
    with pytest.raises(ValueError, match="curves of 1 and of 2"):
        gather(cells, "home", ["up"])


def test_few_texts_have_means_and_no_interval():
    found = summarise(cells_of("home", 4), HOME)
    row = only(found.cells, method="good", metric="blind")
    assert row.mean is not None
    assert row.low is row.high is None
    assert not found.verdicts[0].enough
    assert "4 texts do not carry a verdict" in found.verdicts[0].sentence


def test_a_corpus_without_cells_is_said_to_be_empty():
    found = summarise([], HOME)
    assert found.cells == found.ranking == ()
    assert found.verdicts[0].sentence.startswith("No verdict")
