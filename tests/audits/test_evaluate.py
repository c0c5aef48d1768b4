from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pytest

import veridical
from tiny import tiny
from veridical.attribution import methods
from veridical.audits.evaluate import columns, pair_name, read_cells
from veridical.core import store
from veridical.core.errors import Caution, InputError
from veridical.core.records import Example
from veridical.explanations.exchange import read_explanations, write_explanations
from veridical.explanations.explain import attributions
from veridical.model.classifier import Classifier

evaluation = importlib.import_module("veridical.audits.evaluate")
real_work = evaluation._work
WORDS = "the film was not good and bad plot acting really very boring unbelievable book story".split()
EXAMPLES = [
    Example(f"e{i}", " ".join(np.random.default_rng(i).choice(WORDS, 3 + i % 6)), label=i % 3, rationale=((0, 3),))
    for i in range(20)  # more than one part
]
METHODS = ["attention", "input_x_gradient", "random"]
METRICS = ["sufficiency", "decision_flip", "auc", "agreement", "soft_comprehensiveness:samples=2"]


@pytest.fixture(scope="module")
def clf() -> Classifier:
    return Classifier(*tiny("bert"), name="tiny")


@pytest.fixture(scope="module")
def whole(clf):
    return veridical.evaluate(clf, EXAMPLES, METHODS, METRICS, controls=["permutation"])


def same(a, b) -> None:
    assert columns(a).sort_by(KEYS).equals(columns(b).sort_by(KEYS))


KEYS = [(name, "ascending") for name in ("metric", "method", "control", "example")]


def test_a_cell_for_every_method_metric_and_example(whole):
    kinds = {(c.metric, c.method, c.control) for c in whole.cells}
    for method in METHODS:
        assert {("sufficiency", method, ""), ("sufficiency", method, "permutation"), ("auc", method, "")} <= kinds
        assert ("auc", method, "permutation") not in kinds
    assert ("agreement", pair_name("attention", "random"), "") in kinds
    assert len(whole.cells) == len(EXAMPLES) * (3 * 2 * 3 + 3 + 3)
    assert set(whole.table()) == set(METHODS)
    assert 0 <= whole.mean("sufficiency", "attention") <= 1


def test_one_at_a_time_gives_the_same(clf, whole):
    values = {(c.metric, c.method, c.control, c.example): c.score.value for c in whole.cells}
    for metric in METRICS:
        for example in EXAMPLES[::7]:
            alone = veridical.evaluate(clf, [example], METHODS, metric, controls=["permutation"])
            for c in alone.cells:
                expected = values[c.metric, c.method, c.control, c.example]
                assert (c.score.value is None) == (expected is None)
                assert expected is None or c.score.value == pytest.approx(expected, abs=2e-4)


def test_what_is_on_file_is_not_done_again(clf, whole, tmp_path, monkeypatch):
    first = veridical.evaluate(clf, EXAMPLES, METHODS, METRICS, controls=["permutation"], out=tmp_path)
    same(first.cells, whole.cells)
    before = clf.forwards
    again = veridical.evaluate(clf, EXAMPLES, METHODS, METRICS, controls=["permutation"], out=tmp_path)
    assert clf.forwards == before
    same(again.cells, whole.cells)
    for path in tmp_path.glob("scores/decision_flip-*/attention-*/part-0001.parquet"):
        path.unlink()
    once_more = veridical.evaluate(clf, EXAMPLES, METHODS, METRICS, controls=["permutation"], out=tmp_path)
    assert clf.forwards > before
    same(once_more.cells, whole.cells)


@pytest.mark.parametrize("after", [0, 1, 4, 9, 17])
def test_killed_anywhere_the_same_call_ends_the_same(clf, whole, tmp_path, monkeypatch, after):
    """Every write is atomic, so being killed is being stopped before some write."""
    writes, real = [], store.write_parquet

    def write(path, table):
        if len(writes) == after:
            raise KeyboardInterrupt
        writes.append(path)
        real(path, table)

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_parquet", write)
        with pytest.raises(KeyboardInterrupt):
            veridical.evaluate(clf, EXAMPLES, METHODS, METRICS, controls=["permutation"], out=tmp_path)
    asked: list[int] = []
    monkeypatch.setattr(evaluation, "_work", lambda *args: asked.append(len(args[-1])) or real_work(*args))
    resumed = veridical.evaluate(clf, EXAMPLES, METHODS, METRICS, controls=["permutation"], out=tmp_path)
    assert set(asked) <= {0, 15}  # a part is worked out whole, or not at all
    assert not list(tmp_path.rglob("*.writing.json"))
    same(resumed.cells, whole.cells)


def test_cells_survive_their_file(whole, tmp_path):
    store.write_parquet(tmp_path / "scores.parquet", columns(whole.cells))
    assert tuple(read_cells(tmp_path / "scores.parquet")) == whole.cells


def test_what_soft_metrics_divide_by_is_kept_and_files_of_before_lack_it(clf, tmp_path):
    found = veridical.evaluate(clf, EXAMPLES[:4], "gradient", ["soft_sufficiency", "sufficiency"], out=tmp_path / "x")
    rooms = {cell.metric: cell.score.room for cell in found.cells}
    assert rooms["soft_sufficiency"] is not None
    assert rooms["sufficiency"] is None
    again = veridical.evaluate(clf, EXAMPLES[:4], "gradient", ["soft_sufficiency", "sufficiency"], out=tmp_path / "x")
    same(again.cells, found.cells)
    store.write_parquet(tmp_path / "old.parquet", columns(found.cells).drop_columns(["room"]))
    old = read_cells(tmp_path / "old.parquet")
    assert all(cell.score.room is None for cell in old)
    assert [cell.score.value for cell in old] == [cell.score.value for cell in found.cells]


def test_explanations_made_elsewhere_are_scored_like_ours(clf, whole, tmp_path):
    encoded = clf.encode(EXAMPLES)
    own = [veridical.Explanation.of(clf, a) for a in attributions(clf, encoded, methods.choose("input_x_gradient"))]
    write_explanations(tmp_path / "theirs.jsonl", own)
    rows = veridical.to_attributions(clf, read_explanations(tmp_path / "theirs.jsonl"), EXAMPLES)
    renamed = [type(a)(a.encoded, a.target, a.scores, a.probabilities, "theirs") for a in rows]
    found = veridical.evaluate(clf, EXAMPLES, "random", ["sufficiency"], explanations=renamed)
    assert found.mean("sufficiency", "theirs") == pytest.approx(whole.mean("sufficiency", "input_x_gradient"), abs=1e-5)
    with pytest.raises(InputError, match="lack 1 of 20 examples, the first 'e0'"):
        veridical.evaluate(clf, EXAMPLES, "random", ["sufficiency"], explanations=renamed[1:])


def test_examples_without_a_rationale_are_not_asked_for_plausibility(clf):
    bare = [Example("x", "good film"), EXAMPLES[0]]
    found = veridical.evaluate(clf, bare, "attention", "auc")
    assert [c.example for c in found.cells] == ["e0"]


def test_an_unknown_control_is_named():
    with pytest.raises(InputError, match="'shuffled'; allowed: permutation, gaussian"):
        veridical.evaluate(None, ["a text"], [], None, controls=["shuffled"])  # type: ignore[list-item]


def test_explanations_made_elsewhere_are_known_by_what_they_say(clf, tmp_path):
    """Another file under the same name is scored anew; and whoever comes later gets our own scores for our own."""
    ours = veridical.evaluate(clf, EXAMPLES, "gradient", "decision_flip").attributions["gradient"]

    def scored(sign: int, name: str = "theirs") -> float | None:
        rows = [replace(a, method=name, scores=sign * a.scores) for a in ours]
        found = veridical.evaluate(clf, EXAMPLES, "random", "decision_flip", explanations=rows, out=tmp_path)
        return found.mean("decision_flip", name)

    first, second = scored(1), scored(-1)
    assert (scored(1), scored(-1)) == (first, second)
    assert first != second
    with pytest.raises(InputError, match="called 'random', as one of ours is"):
        scored(1, "random")
    with pytest.raises(InputError, match="twice"):
        veridical.evaluate(clf, EXAMPLES, "random", "auc", explanations=[*ours, *ours])


def test_a_folder_is_of_one_target_and_of_these_texts(clf, tmp_path):
    veridical.evaluate(clf, EXAMPLES, "gradient", "decision_flip", target=0, out=tmp_path)
    with pytest.raises(InputError, match="target is 0 there and 1 now"):
        veridical.evaluate(clf, EXAMPLES, "gradient", "decision_flip", target=1, out=tmp_path)
    with pytest.raises(InputError, match="texts is"):
        veridical.evaluate(clf, EXAMPLES[1:], "gradient", "decision_flip", target=0, out=tmp_path)


def test_pairs_whose_long_names_begin_alike_have_files_of_their_own(clf, tmp_path):
    names = [f"integrated_gradients:rule={rule}:baseline=mask:aggregate=sum" for rule in ("left", "right", "mid")]
    with pytest.warns(Caution, match="do not add up"):  # so few steps are cheap
        first = veridical.evaluate(clf, EXAMPLES, [f"{n}:steps=2" for n in names], "agreement", out=tmp_path)
    again = veridical.evaluate(clf, EXAMPLES, [f"{n}:steps=2" for n in names], "agreement", out=tmp_path)
    assert again.cells == first.cells
    assert len(list((tmp_path / "scores").rglob("pair-*"))) == 3


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("sparsity:ratios=1.5", "'ratios' of metric 'sparsity' is 1.5; it must be from 0 to 1"),
        ("jaccard:share=3", "'share' of metric 'jaccard' is 3; it must be above 0 and at most 1"),
        (
            "soft_sufficiency:mode=gaussian:variance=inf",
            "'variance' of metric 'soft_sufficiency' is inf; it must be above 0, and finite",
        ),
        (",", "metrics is ',', so none is named"),
    ],
)
def test_settings_that_make_no_sense_are_refused(clf, metric, said):
    with pytest.raises(InputError, match=said):
        veridical.evaluate(clf, EXAMPLES[:1], "gradient,attention", metric)


# -- what cannot be computed --------------------------------------------------------------------------------

PLAIN = [replace(example, rationale=()) for example in EXAMPLES[:6]]


def test_a_metric_that_no_text_allows_is_refused_with_its_reason(clf):
    before = clf.forwards
    with pytest.raises(InputError, match=r"auc cannot be computed: .*none of the 6 texts has one"):
        veridical.evaluate(clf, PLAIN, "attention", "auc")
    with pytest.raises(InputError, match="agreement cannot be computed: it compares two methods, and one is named"):
        veridical.evaluate(clf, PLAIN, "attention", "agreement")
    assert clf.forwards == before


def test_one_of_several_that_no_text_allows_is_left_out_and_said(clf):
    with pytest.warns(Caution, match="auc cannot be computed: .*It is left out") as told:
        scored = veridical.evaluate(clf, PLAIN, "attention", ["auc", "sparsity"])
    assert told[0].filename == __file__
    assert {cell.metric for cell in scored.cells} == {"sparsity"}
    mixed = [*PLAIN, replace(EXAMPLES[0], id="marked")]
    assert veridical.evaluate(clf, mixed, "attention", "auc").estimates["auc", "attention"].n == 1
