"""Which worlds there are, and tiny ones made: trained, explained, scored, killed and resumed."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.data import load_data
from veridical.model.ask import predict
from veridical.model.load import load
from veridical.probes.options import ValidateOptions, seeds_or_none
from veridical.probes.validation import making
from veridical.probes.validation.making import ORDERS, make, place, read_facts
from veridical.probes.validation.panels import HARD, OPERATORS, SOFT, of_order, panels
from veridical.probes.validation.validate import setting_of
from veridical.probes.validation.world import RULES, Setting, World, audited, worlds

METHODS = ("attention", "occlusion")
EASY = World("single", 1, 0.8, 0, "bilstm:hidden=16:embedding=16")


def options(out: Path, **asked: Any) -> ValidateOptions:
    small = {"methods": METHODS, "texts": 24, "dear_texts": 16, "size": 300, "models": (EASY.model,), "learnt": 0.8}
    return ValidateOptions(out=out, **{**small, **asked})


def begin(out: Path, **asked: Any) -> Setting:
    setting = setting_of(options(out, **asked))
    setting.write(out)
    return setting


def call(out: Path, world: World) -> None:
    make(out=str(out), **vars(world))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("worlds")
    begin(out)
    call(out, EASY)
    return out


# -- which --------------------------------------------------------------------------------------------------


def test_the_models_are_shared_out_evenly_over_everything_that_worlds_differ_in():
    asked = list(worlds(range(5), ("a", "b"), RULES, (1, 2), (0.0, 0.8)))
    assert len({world.key for world in asked}) == len(asked) == 60
    for kind in ("rule", "copies", "shortcut", "seed"):
        counts = Counter((getattr(world, kind), world.model) for world in asked)
        assert max(counts.values()) - min(counts.values()) <= 2, kind
    assert {w.model for w in asked if replace(w, seed=0, model="") == replace(asked[0], model="")} == {"a", "b"}
    # A world has its model whatever else is asked for.
    assert next(worlds((3,), ("a", "b"), ("order",), (2,), (0.8,))) in list(
        worlds(range(5), ("a", "b"), RULES, (1, 2), (0.0, 0.8))
    )


def test_texts_are_a_seeded_sample_with_the_labels_in_turn():
    examples = [Example(f"e{i}", f"text {i}", i % 3 > 0) for i in range(60)]
    texts = audited(examples, 30, 7)
    assert texts == audited(examples, 30, 7) != audited(examples, 30, 8)
    assert Counter(e.label for e in texts) == {False: 10, True: 20}
    assert [e.label for e in texts[:20]] == [False, True] * 10
    assert [e.id for e in texts] != [e.id for e in examples if e in texts]


@pytest.mark.parametrize(
    ("typed", "seeds"),
    [(["0-4"], (0, 1, 2, 3, 4)), (["0,2", "7-8"], (0, 2, 7, 8)), (["3", "3"], (3,)), (["none"], ())],
)
def test_seeds_as_they_are_typed(typed: list[str], seeds: tuple[int, ...]):
    assert seeds_or_none(typed) == seeds


@pytest.mark.parametrize("typed", ["4-1", "-1", "a", "1-", "0..4"])
def test_what_is_no_seed_is_refused(typed: str):
    with pytest.raises(InputError, match="is not a seed or a range"):
        seeds_or_none([typed])


def test_a_seed_cannot_choose_and_be_fresh(tmp_path: Path):
    with pytest.raises(InputError, match="Seed 1 is among seeds and fresh"):
        options(tmp_path, seeds=(0, 1), fresh=(1, 2))
    with pytest.raises(InputError, match="There is no seed"):
        options(tmp_path, seeds=(), fresh=())


def test_every_panel_is_of_metrics_that_are_scored():
    scored = {*of_order(), *SOFT}
    assert all(scored.issuperset(panel.metrics) for panel in panels())
    assert len({panel.label for panel in panels()}) == len(panels())
    assert {(panel.by, *panel.metrics) for panel in panels() if panel.name == "hard"} >= {("delete", *HARD)}
    assert {panel.by for panel in panels()} == {*OPERATORS, ""}


def test_metrics_that_are_named_make_the_panels(tmp_path: Path):
    asked = setting_of(options(tmp_path, metrics="decision_flip,soft_sufficiency,sufficiency:by=delete"))
    assert (asked.metrics, asked.shaped) == (("sufficiency", "decision_flip"), ("soft_sufficiency",))
    whole = setting_of(options(tmp_path))
    assert (whole.metrics, whole.shaped) == (of_order(), SOFT)
    with pytest.raises(InputError, match=r"auc is in no panel that is judged here; name some of sufficiency, "):
        setting_of(options(tmp_path, metrics="auc"))


# -- made ---------------------------------------------------------------------------------------------------


def test_a_world_holds_every_score_once(made: Path):
    setting, facts = Setting.read(made), read_facts(made, EASY)
    assert facts is not None
    assert facts.learnt
    assert (facts.methods, facts.texts) == (METHODS, 24)
    assert facts.passes["attention"] == 1 < facts.passes["occlusion"]
    rows = store.read_parts(place(made, EASY) / "scores").to_pylist()
    held = Counter((row["metric"], row["control"], row["method"], row["text"] >= 16) for row in rows)
    for method in (*METHODS, *ORDERS):
        for metric in setting.metrics:
            assert held[metric, "", method, False] == 16, metric
            assert held[metric, "", method, True] == (0 if making.is_dear(metric) else 8)
        for metric in SOFT:
            assert held[metric, "", method, False] == held[metric, "permutation", method, False] == 16
            assert held[metric, "", method, True] == 0
    texts = [(row["text"], row["method"], row["metric"], row["control"]) for row in rows]
    assert len(set(texts)) == len(texts)
    assert not (place(made, EASY) / "run").exists()  # the model has done its work


def test_the_planted_words_carry_a_decision_that_changes_without_them(made: Path, tmp_path: Path):
    setting = Setting.read(made)
    run = making._trained(EASY, setting, tmp_path / "run")
    clf = load(run.folder)
    texts = audited(load_data(EASY.data(setting)).splits["test"], setting.texts, EASY.seed)
    table = store.read_parquet(place(made, EASY) / "texts.parquet")
    assert table["id"].to_pylist() == [e.id for e in texts]
    cut = []
    for example in texts:
        ((start, end),) = example.rationale
        cut.append(Example(example.id, example.text[:start] + example.text[end:]))
    predicted, without = (predict(clf, clf.encode(some)).logits.argmax(1) for some in (texts, cut))
    assert table["predicted"].to_pylist() == predicted.tolist()
    assert table["carried"].to_pylist() == (predicted != without).tolist()
    facts = read_facts(made, EASY)
    assert facts is not None
    assert 0 < facts.carried == int((predicted != without).sum()) < facts.texts


class Latched:
    """A model that says what the first of funny and sad says, and negative where there is neither."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(making, "predict", lambda clf, texts: SimpleNamespace(logits=np.eye(2)[clf.said(texts)]))

    def encode(self, examples: list[Example]) -> list[Any]:
        return [SimpleNamespace(example=example) for example in examples]

    def said(self, texts: list[Any]) -> list[int]:
        told = [[word for word in text.example.text.split() if word in ("funny", "sad")] for text in texts]
        return [int(words[:1] == ["funny"]) for words in told]


def test_a_model_that_looks_for_the_first_word_needs_no_other(monkeypatch: pytest.MonkeyPatch):
    def example(text: str) -> Example:
        spans = [match.span() for match in re.finditer("funny|sad", text)]
        return Example(text, text, rationale=tuple(spans))

    clf: Any = Latched(monkeypatch)
    texts = ["a funny b sad", "a sad b funny", "funny c funny d sad", "a sad b sad", "plain"]
    needed = making.needed_words(clf, clf.encode([example(text) for text in texts]))
    words = [[text[start:end] for start, end in spans] for text, spans in zip(texts, needed, strict=True)]
    assert words == [["funny"], ["sad"], ["funny", "funny"], ["sad", "sad"], []]


def test_a_killed_world_goes_on_to_the_same_bytes(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Killed(BaseException):
        pass

    write, count = store.write_parquet, 0

    def dies(*given: Any) -> None:
        nonlocal count
        count += 1
        if count == 4:  # after the training's predictions, the texts and one part of the scores
            raise Killed
        write(*given)

    begin(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(making.store, "write_parquet", dies)
        with pytest.raises(Killed):
            call(tmp_path, EASY)
    assert read_facts(tmp_path, EASY) is None
    part = place(tmp_path, EASY) / "scores" / "part-0000.parquet"
    before = os.stat(part).st_mtime_ns
    call(tmp_path, EASY)
    assert os.stat(part).st_mtime_ns == before
    files = sorted(path.relative_to(made) for path in place(made, EASY).rglob("*") if path.is_file())
    assert [path.name for path in files] == ["part-0000.parquet", "part-0001.parquet", "texts.parquet", "world.json"]
    assert all((made / path).read_bytes() == (tmp_path / path).read_bytes() for path in files)


def test_a_world_that_is_not_learnt_is_recorded_and_not_explained(tmp_path: Path):
    hard = replace(EASY, rule="order", copies=2)
    begin(tmp_path, size=20, epochs=1, learnt=1.0)
    call(tmp_path, hard)
    facts = read_facts(tmp_path, hard)
    assert facts is not None
    assert not facts.learnt
    assert (facts.epochs, facts.texts, facts.methods) == (1, 0, ())
    assert sorted(path.name for path in place(tmp_path, hard).iterdir()) == ["world.json"]


def test_absolute_scores_count_where_a_word_may_argue_against():
    assert {rule: World(rule, 1, 0.0, 0, "bilstm").truth for rule in RULES} == {
        "single": "truth",
        "conjunction": "truth",
        "order": "truth:abs=true",
    }


def test_other_settings_do_not_mix_with_what_is_there(made: Path):
    with pytest.raises(InputError, match=r"validate.texts is 24 there and 32 now"):
        setting_of(options(made, texts=32)).write(made)
    assert np.array_equal(Setting.read(made).methods, METHODS)
