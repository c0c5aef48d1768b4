"""From cells to the summary: shapes, counts, and the sections agreeing with one another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit_facts import a_corpus, a_course, a_metric, facts, settings, summary_of

from veridical.audits.plan import ORDERS
from veridical.audits.sheet import gather
from veridical.audits.summary import summarise
from veridical.core.errors import InputError
from veridical.core.records import Cell, Score
from veridical.core.seed import generator

RATIOS = (0.1, 0.5)
METHODS = ("good", "fair", "poor", *ORDERS)
STRENGTH = {
    "good": 0.5,
    "fair": 0.25,
    "poor": 0.0,
    **dict.fromkeys(ORDERS, 0.0),
    "oracle": 0.7,
    "inverted oracle": -0.3,
}


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
    *("agreement", "sparsity", "looks", "net_curves"),
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
    return summary_of(cells, facts(CORPORA, METRICS))


def only(rows, **wanted):
    [row] = [row for row in rows if all(getattr(row, key) == value for key, value in wanted.items())]
    return row


def test_every_table_has_rows_of_every_corpus(summary):
    given = facts(CORPORA, METRICS)
    bare = replace(summary, **dict.fromkeys(TABLES, ()), truth=())
    counted = tuple(replace(corpus, unmoved=None) for corpus in bare.corpora)
    assert replace(bare, corpora=counted) == given  # the facts are kept as they were
    assert all(corpus.unmoved == 0 for corpus in bare.corpora)
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
    # A room without an error: of a metric that draws nothing, as NAOPC.
    cells += [Cell("home", f"t{i}", m, "up", Score(0.5, room=0.01)) for i in range(6) for m in ("good", "fair")]
    cells += [Cell("home", "t9", method, "soft", Score(None, room=1e-7)) for method in ("good", "fair")]
    cells += [replace(c, method=order) for order in ORDERS for c in cells if c.method == "fair"]
    found = summary_of(cells, facts(CORPORA[:1], [a_metric("soft"), a_metric("up")]))
    row = only(found.cells, method="good", metric="soft")
    assert (row.n, row.undefined, row.small) == (6, 1, 2)  # what is undefined is not counted twice
    assert only(found.cells, method="good", metric="up").small is None
    (note,) = [n for n in found.verdicts[0].notes if "D below 0.1" in n]
    assert "soft on 2 of 6" in note
    assert "up on" not in note


def test_sampling_errors_add_in_squares(summary):
    row = only(summary.cells, corpus="away", method="fair", metric="down")
    assert row.sampling_error == pytest.approx(0.1 / np.sqrt(20))


def test_a_metric_that_sees_nothing_is_shown_to_be_blind(summary):
    assert summary.verdicts[0].panel == ("up", "down", "blind")
    row = only(summary.diagnosticity, corpus="home", metric="down", method="")
    assert row.control == "permutation"
    assert row.value > 0.65  # lower is better there
    assert not only(summary.diagnosticity, corpus="home", metric="blind", method="").diagnostic
    assert 0.3 < only(summary.diagnosticity, corpus="home", metric="down", method="random").value < 0.7
    assert len(only(summary.diagnosticity, corpus="home", metric="up", method="good").curve) == 2


def test_metrics_of_order_alone_are_held_against_the_shared_orders():
    cells = [cell for cell in cells_of("home", 60) if not cell.control]
    by_order = [replace(metric, order=True) for metric in METRICS]
    found = summary_of(cells, facts(CORPORA[:1], by_order, settings=settings(controls=("orders",))))
    row = only(found.diagnosticity, metric="up", method="")
    assert (row.control, row.n, row.pairs) == ("orders", 59, 3 * 3 * 59)
    assert row.diagnostic
    own = summary_of(cells_of("home", 60), HOME)
    assert row.value == pytest.approx(only(own.diagnosticity, metric="up", method="").value, abs=0.08)
    assert only(found.metric_tests, a="up", b="blind").p_holm < 0.01


def test_metrics_are_tested_against_each_other(summary):
    row = only(summary.metric_tests, corpus="home", a="up", b="blind")
    assert row.p_holm < 0.01
    assert row.effect > 0
    assert len([r for r in summary.metric_tests if r.corpus == "home"]) == 3
    assert {r.method for r in summary.metric_tests_by_method} == {"good", "fair", "poor"}


def test_the_verdict_follows_the_scores(summary):
    home, away = summary.verdicts
    assert home.believe == ("good",)
    assert home.behind == ("fair",)
    assert home.chance == ("poor",)  # which is as good as its own scores shuffled
    assert home.enough
    lists = "believe good; fair is worse; do not use poor: no better than chance (within 60:40)."
    assert home.sentence == f"For this model on this data {lists}"
    standings = [row for row in summary.ranking if row.corpus == "home"]
    assert [row.method for row in standings] == ["good", "fair", "poor"]
    assert [row.list for row in standings] == ["believe", "behind", "chance"]
    first, second = standings[:2]
    assert first.net_first is None
    assert second.net_first < 0 < second.net_chance < first.net_chance
    assert second.net_first_low < second.net_first < second.net_first_high
    assert (second.left, second.by) == (60, "good")
    assert second.p_behind <= second.level
    assert any(note.startswith("On home good comes first; here fair does") for note in away.notes)


def test_comparisons_are_per_metric(summary):
    metrics = {row.metric for row in summary.comparisons}
    assert metrics == {"up", "down", "blind", "auc"}
    row = only(summary.comparisons, corpus="home", metric="down", a="good", b="poor")
    assert row.difference < 0 < row.effect  # lower and better
    assert row.distinguishable
    blind = [row for row in summary.comparisons if row.metric == "blind" and row.corpus == "home"]
    assert len(blind) == 15
    assert not any(row.distinguishable for row in blind)


def test_agreement_and_sparsity(summary):
    row = only(summary.agreement, corpus="home", a="good", b="random")
    assert (row.tau, row.jaccard, row.n) == (pytest.approx(0.2), 0.5, 60)
    assert len([r for r in summary.agreement if r.corpus == "home"]) == 15
    row = only(summary.sparsity, corpus="home", method="fair")
    assert row.shares == RATIOS
    assert row.mass == pytest.approx([0.4, 0.6])


def test_truth_shows_how_metrics_rank_the_oracle():
    methods = (*METHODS, "oracle", "inverted oracle")
    found = summary_of(cells_of("home", 40, methods), HOME)
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


def test_without_controls_metrics_that_read_more_than_the_order_are_not_judged():
    cells = [cell for cell in cells_of("home", 40) if not cell.control]
    found = summary_of(cells, HOME)
    assert found.diagnosticity == found.metric_tests == ()
    assert "good" in found.verdicts[0].believe


def test_the_first_control_compares_the_metrics_where_there_are_two():
    plain = cells_of("home", 30)
    easy = [replace(c, control="gaussian", score=Score(-9.0, (-9.0, -9.0))) for c in plain if c.control]
    found = summary_of([*easy, *plain], HOME)
    alone = summary_of(plain, HOME)
    assert found.verdicts == alone.verdicts
    assert found.metric_tests == alone.metric_tests
    assert only(found.diagnosticity, metric="blind", method="", control="gaussian").value == 1.0
    assert only(found.diagnosticity, metric="down", method="", control="gaussian").value == 0.0


def test_a_metric_without_a_vote_is_shown_and_changes_nothing():
    mute = [replace(m, votes=False) if m.name == "down" else m for m in METRICS]
    found = summary_of(cells_of("home", 40), facts(CORPORA[:1], mute))
    said = found.verdicts[0]
    assert said.panel == ("up", "blind")
    assert "Shown, and without a vote: down." in said.notes
    assert only(found.diagnosticity, metric="down", method="").value > 0.5  # still measured
    without = [cell for cell in cells_of("home", 40) if cell.metric != "down"]
    bare = summary_of(without, facts(CORPORA[:1], [m for m in METRICS if m.name != "down"]))
    assert found.ranking == bare.ranking


def test_texts_on_which_nothing_moves_are_counted_and_named():
    cells = [
        replace(cell, score=replace(cell.score, value=0.25)) if cell.example in ("t3", "t7") else cell
        for cell in cells_of("home", 30)
    ]
    found = summary_of(cells, HOME)
    assert found.corpora[0].unmoved == 2
    assert any(
        note.startswith("On 2 of 30 texts no erasure") and "(t3, t7)" in note for note in found.verdicts[0].notes
    )


def test_a_model_that_is_no_better_than_the_majority_gets_no_verdict():
    guess = a_corpus("home", texts=60, accuracy=0.55, majority=0.55)
    found = summary_of(cells_of("home", 60), facts([guess], METRICS))
    said = found.verdicts[0]
    assert said.sentence.startswith("No verdict: the model is right on 55% of these 60 texts")
    assert (said.believe, said.behind, said.enough) == ((), (), False)
    assert all(row.list is None for row in found.ranking)
    assert found.ranking[0].net_chance > 0  # figures are shown all the same


def test_metrics_at_odds_are_named():
    cells = []
    draw = generator("odds")
    strengths = {"a": (3, 1), "b": (2, 2), "c": (1, 3), **dict.fromkeys(ORDERS, (0.5, 0.5))}
    for text in range(40):
        for method, (first, second) in strengths.items():
            for metric, strength in (("up", first), ("blind", second)):
                cells.append(Cell("home", f"t{text}", method, metric, Score(draw.random() + strength)))
    found = summary_of(cells, HOME)
    assert found.verdicts[0].notes[-1] == "up and blind order the methods against each other (Kendall's tau -1.00)."


def test_the_result_depends_on_the_cells_not_on_their_order(summary):
    cells = cells_of("home", 60)
    turned = sorted(cells, key=lambda c: (c.control, c.metric, c.method != "good", c.example))
    straight, other = (summary_of(c, HOME) for c in (cells, turned))
    assert straight.verdicts[0].sentence == other.verdicts[0].sentence
    for row in straight.ranking:
        twin = only(other.ranking, method=row.method)
        assert (twin.net_chance, twin.list) == (pytest.approx(row.net_chance), row.list)


def test_two_scores_of_one_thing_are_refused():
    cell = Cell("home", "t1", "good", "up", Score(0.5))
    with pytest.raises(InputError, match="two scores of good by up on text 't1'"):
        gather([cell, cell], "home", ["up"])


def test_curves_of_two_lengths_are_a_mistake():
    cells = [Cell("home", f"t{i}", "good", "up", Score(0.5, (0.1,) * (i + 1))) for i in range(2)]
    with pytest.raises(ValueError, match="curves of 1 and of 2"):
        gather(cells, "home", ["up"])


def test_few_texts_have_means_and_no_interval():
    found = summary_of(cells_of("home", 4), HOME)
    row = only(found.cells, method="good", metric="blind")
    assert row.mean is not None
    assert row.low is row.high is None
    assert not found.verdicts[0].enough
    assert found.verdicts[0].sentence.startswith("No verdict: 4 texts cannot carry one: with 3 methods")


def test_many_texts_of_few_documents_carry_no_verdict():
    cells = cells_of("home", 30)
    plain = [cell for cell in cells if " ~ " not in cell.method]
    course = a_course("home", plain, HOME.metrics)
    documents = {text: f"document {k % 4}" for k, text in enumerate(course.units)}
    found = summarise(HOME, {"home": replace(course, units=documents)}, {"home": cells})
    assert found.corpora[0].documents == 4
    assert found.verdicts[0].sentence.startswith("No verdict: 4 documents cannot carry one: with 3 methods")
