"""FRESH: the extractor against its definition, and the whole job on tiny models, killed and resumed."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import veridical
from goldens import GOLDEN
from tiny import tiny
from toy import small_model, toy
from veridical.attribution import methods
from veridical.cli.app import app
from veridical.cli.recipe import read
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Attribution, Dataset, Encoded, Example
from veridical.core.settings import build, merge
from veridical.core.text import words_of
from veridical.data import datasets
from veridical.retraining.extract import extract, only, rationale_of
from veridical.retraining.fresh import fresh
from veridical.retraining.fresh_result import Fresh
from veridical.retraining.fresh_table import FULL, RANDOM, tabulate
from veridical.training.config import TrainConfig
from veridical.training.term import objective

CONFIG = TrainConfig(epochs=2, batch=16, lr=2e-3, head_lr=2e-3)


# -- the extractor ------------------------------------------------------------------------------------------


def test_the_extractor_selects_what_the_golden_case_says():
    case = GOLDEN["fresh_extraction"]
    scores, ratio, expected = case["inputs"]["scores"], case["inputs"]["ratio"], case["expected"]
    assert len(extract(scores, ratio)) == expected["k"]
    assert extract(scores, ratio) == expected["topk_document_order"]
    assert extract(scores, ratio, "contiguous") == expected["contiguous"]
    assert extract(expected["second"]["scores"], ratio) == expected["second"]["topk_document_order"]


def test_a_word_scores_the_sum_of_its_pieces():
    case = GOLDEN["wordpiece_to_word"]
    encoded = Encoded(
        Example("x", "unbelievable film"), (1, 2, 3, 4), (0,) * 4, ((0, 2), (2, 8), (8, 12), (13, 17)),
        tuple(case["inputs"]["word_ids"]), (True,) * 4,
    )  # fmt: skip
    own = Attribution(encoded, 0, np.array(case["inputs"]["scores"], dtype=np.float32), np.array([1.0]), "given")
    assert rationale_of(own, ratio=0.5) == [case["expected"]["top1"]["sum"]]
    assert only(encoded.example, [0]).text == "unbelievable"


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 0.125, 0.25, 0.375, 0.75]), min_size=1, max_size=30),
    st.sampled_from([0.01, 0.1, 0.2, 0.29, 0.5, 1.0]),
)
def test_the_extractor_keeps_to_its_definition(scores: list[float], ratio: float):
    k = max(1, math.ceil(Fraction(str(ratio)) * len(scores)))
    top, span = extract(scores, ratio), extract(scores, ratio, "contiguous")
    assert len(top) == len(span) == k
    assert top == sorted(top)
    left = [i for i in range(len(scores)) if i not in top]
    assert all((scores[i], -i) > (scores[j], -j) for i in top for j in left)
    sums = [sum(scores[i : i + k]) for i in range(len(scores) - k + 1)]
    assert span == list(range(sums.index(max(sums)), sums.index(max(sums)) + k))


def test_words_that_were_not_read_are_never_selected():
    """Of a text that is cut the score is of what was read; an unread word's 0 would beat a negative score."""
    clf = veridical.load(*tiny("bert"))
    example = Example("long", " ".join(["the film was bad"] * 30))
    (encoded,) = clf.encode([example])
    assert encoded.cut
    read = max(encoded.words) + 1
    scores = -np.ones(len(encoded.ids), dtype=np.float32)
    chosen = rationale_of(Attribution(encoded, 0, scores, np.zeros(3), "given"), ratio=0.2)
    assert chosen == list(range(math.ceil(read / 5)))


def test_the_context_of_a_pair_is_kept_whole():
    example = Example("x", "John went  to the kitchen.", 1, "Where is John?", ((0, 4),))
    assert only(example, [0, 4]) == Example("x", "John kitchen.", 1, "Where is John?")


# -- the table ----------------------------------------------------------------------------------------------


def test_intervals_come_with_the_fifth_seed_and_undefined_values_are_counted():
    values = {("d", FULL, "a"): {0: 0.5, 1: 0.7}, ("d", FULL, "b"): dict(enumerate([0.1, 0.2, 0.3, 0.4, 0.5]))}
    values |= {("d", RANDOM, "a"): {0: 0.4, 1: None}, ("d", RANDOM, "b"): {0: 0.4}}
    table = tabulate(values, [])  # type: ignore[arg-type]
    two, five, half, _ = table.entries
    assert (two.low, two.values, two.mean) == (None, (0.5, 0.7), pytest.approx(0.6))
    assert five.low is not None
    assert five.high is not None
    assert five.low < 0.3 < five.high
    assert (half.n, half.undefined, half.mean) == (1, 1, 0.4)
    assert [(t.method, t.a, t.b) for t in table.tests] == [(FULL, "a", "b")]
    assert table.tests[0].difference == pytest.approx(0.3)


# -- the job ------------------------------------------------------------------------------------------------


def other() -> Dataset:
    """Another corpus: the toy's words under another name, its labels in another order."""
    examples = toy(train=4, dev=4, test=12).splits["test"]
    mirrored = [replace(e, id=f"o-{e.id}", text=f"{e.text} really", label=1 - int(e.label)) for e in examples]  # type: ignore[arg-type]
    return Dataset("elsewhere", ("good", "bad"), {"test": tuple(mirrored)})


def job(model: str, folder: Path, **more: Any) -> Fresh:
    given: dict[str, Any] = {"methods": "attention", "config": CONFIG, "ratio": 0.4, "progress": False}
    return fresh(toy(), model, out=folder, **{**given, **more})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(tmp_path_factory.mktemp("model"), num_labels=2)


@pytest.fixture(scope="module")
def done(model: str, tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    folder = tmp_path_factory.mktemp("fresh") / "job"
    return job(model, folder, methods="attention,input_x_gradient", seeds=2, ood=[other()])


def test_every_method_and_corpus_has_its_figure(done: Fresh):
    rows = [(e.corpus, e.method, e.n) for e in done.table.entries]
    names = (FULL, "attention", "input_x_gradient", RANDOM)
    assert rows == [(corpus, name, 2) for corpus in ("toy", "elsewhere") for name in names]
    for entry in done.table.entries:
        assert entry.low is None
        assert all(0 <= value <= 1 for value in entry.values)
    assert done.f1("attention") == done.table.entries[1].mean
    with pytest.raises(InputError, match="no figure for toy / lime / cross_entropy"):
        done.f1("lime")


def test_the_figures_are_those_of_classifiers_that_read_rationales_alone(done: Fresh):
    """From the files: the stored explanations select the stored words, the stored model scores the stored F1."""
    (place,) = done.folder.glob("cross_entropy-*/seed1")
    (own,) = place.glob("attention-*")
    rows = [r for r in store.read_parquet(own / "rationales.parquet").to_pylist() if r["split"] == "test"]
    support = veridical.load(place / "support")
    explanations = veridical.explain(support, list(toy().splits["test"]), "attention")
    for row, explanation in zip(rows, explanations, strict=True):
        words = explanation.words
        k = math.ceil(Fraction(2, 5) * len(words))
        best = sorted(sorted(range(len(words)), key=lambda i: (-explanation.word_scores[i], i))[:k])
        assert row["words"] == best
        assert row["text"] == " ".join(words[i] for i in best)
    clf = veridical.load(own / "classifier")
    texts = [Example(row["id"], row["text"]) for row in rows]
    answers = [int(e.probabilities.argmax()) for e in veridical.explain(clf, texts, "random")]
    gold = [e.label for e in toy().splits["test"]]
    f1 = []
    for label in (0, 1):
        hits = sum(a == g == label for a, g in zip(answers, gold, strict=True))
        f1.append(2 * hits / max(1, answers.count(label) + gold.count(label)))
    (entry,) = [e for e in done.table.entries if (e.corpus, e.method) == ("toy", "attention")]
    assert entry.values[1] == pytest.approx(sum(f1) / 2)


def test_labels_of_other_corpora_are_matched_by_name(done: Fresh):
    """The other corpus numbers its classes the other way round; what is learnt carries over all the same."""
    (place,) = done.folder.glob("cross_entropy-*/seed0/support")
    rows = [r for r in store.read_parquet(place / "predictions.parquet").to_pylist() if r["split"] == "elsewhere"]
    assert [r["label"] for r in rows] == [e.label for e in toy(test=12).splits["test"]]


def test_random_rationales_are_drawn_anew_for_each_seed_and_once_for_all_objectives(done: Fresh):
    drawn = [store.read_parquet(done.folder / f"random/seed{s}/rationales.parquet").to_pylist() for s in (0, 1)]
    assert [r["words"] for r in drawn[0]] != [r["words"] for r in drawn[1]]
    assert not list(done.folder.glob("cross_entropy-*/seed*/random*"))


def test_the_tables_lie_in_the_folder(done: Fresh):
    text = (done.folder / "table.txt").read_text()
    assert text == str(done)
    assert "toy: macro_f1" in text
    assert "elsewhere: macro_f1" in text
    assert "40% of the words" in text
    assert b"\r" not in (done.folder / "table.csv").read_bytes()
    assert (done.folder / "table.csv").read_text().count("\n") == 1 + len(done.table.entries)
    assert r"\toprule" in (done.folder / "table.tex").read_text()
    summary = store.read_json(done.folder / "summary.json")
    assert summary == done.summary
    assert summary["entries"][0]["values"] == list(done.table.entries[0].values)


def test_methods_seeds_and_objectives_add_to_a_folder_and_other_settings_are_refused(model: str, tmp_path: Path):
    first = job(model, tmp_path / "job")
    log = next((tmp_path / "job").glob("cross_entropy-*/seed0/support/train.jsonl"))
    before = log.read_bytes()
    more = job(
        model, tmp_path / "job", methods="attention,gradient", objective=["cross_entropy", "cross_entropy:weight=2"]
    )
    assert log.read_bytes() == before
    assert more.table.models == ("cross_entropy", "cross_entropy:weight=2")
    assert more.f1("attention") == first.f1("attention")
    assert more.f1(RANDOM) == more.f1(RANDOM, "cross_entropy:weight=2") == first.f1(RANDOM)
    with pytest.raises(InputError, match=r"fresh\.ratio is 0\.4 there and 0\.5 now"):
        job(model, tmp_path / "job", ratio=0.5)


def test_finished_runs_and_models_can_be_explained_instead(model: str, tmp_path: Path):
    runs = [
        veridical.train(toy(), model, seed=s, config=CONFIG, out=tmp_path / f"r{s}", progress=False) for s in (3, 4)
    ]
    found = job(model, tmp_path / "job", support=[run.folder for run in runs])
    assert found.table.models == ("cross_entropy",)
    (full,) = [e for e in found.table.entries if e.method == FULL]
    assert full.values == tuple(run.scores["test"]["macro_f1"] for run in runs)
    assert sorted(p.name for p in (tmp_path / "job" / "random").iterdir()) == ["seed3", "seed4"]
    clf = veridical.load(runs[0].folder / "model")
    given = job(model, tmp_path / "given", support=clf, seeds=[7])
    assert given.f1(FULL) == runs[0].scores["test"]["macro_f1"]
    with pytest.raises(InputError, match="cross_entropy with seed 3 is named twice"):
        job(model, tmp_path / "twice", support=[runs[0].folder, runs[0].folder])


@pytest.mark.parametrize("kind", ["pair", "multilabel"])
def test_pairs_and_several_labels_work_too(kind: str, tmp_path: Path):
    data = toy(train=24, dev=8, test=8, classes=3, **{kind: True})
    config = TrainConfig(epochs=1, batch=8, lr=1e-3, head_lr=1e-3, select="loss")
    found = fresh(
        data, "bilstm", methods="attention", extractor="contiguous", config=config, out=tmp_path / "job", progress=False
    )
    assert [e.method for e in found.table.entries] == [FULL, "attention", RANDOM]
    (path,) = (tmp_path / "job").glob("cross_entropy-*/seed0/attention-*/rationales.parquet")
    examples = [e for split in data.splits.values() for e in split]
    for row, example in zip(store.read_parquet(path).to_pylist(), examples, strict=True):
        assert row["words"] == list(range(row["words"][0], row["words"][-1] + 1))
        assert len(row["words"]) == math.ceil(Fraction(1, 5) * len(words_of(example.text)))


class Killed(BaseException):
    """Stands for SIGKILL where the test must live on."""


def test_killed_before_any_write_it_goes_on_to_the_same_table(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Renames no longer happen, at one place after the other; nothing is tidied up, as after kill -9."""
    config, rename, calls = replace(CONFIG, epochs=1), os.replace, [0]

    def dies(fatal: int) -> Any:
        def replace_or_die(source: Any, target: Any) -> None:
            calls[0] += 1
            if calls[0] == fatal:
                raise Killed
            rename(source, target)

        return replace_or_die

    def run(folder: Path) -> Path:
        return fresh(toy(20, 8, 8), model, methods="attention", config=config, out=folder, progress=False).folder

    def result(folder: Path) -> dict[str, bytes]:
        kept = [p for p in folder.rglob("*") if p.name in ("table.csv", "summary.json", "model.safetensors")]
        assert len(kept) == 5  # one model on full text, two on rationales
        assert not list(folder.rglob(f"{store.TEMPORARY}*"))
        return {str(p.relative_to(folder)): p.read_bytes() for p in kept}

    expected = result(run(tmp_path / "whole"))
    folder, kills = tmp_path / "killed", 0
    while True:  # one folder, killed again and again, ever further on
        with monkeypatch.context() as patch:
            calls[0] = 0
            patch.setattr(store.os, "replace", dies(1 + kills % 9))
            patch.setattr(store, "remove", lambda path: None)
            try:
                run(folder)
                break
            except Killed:
                kills += 1
    assert kills > 8
    assert result(run(folder)) == expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ratio": 0.0}, "ratio is 0; it must be above 0 and at most 1"),
        ({"ratio": 1.5}, "ratio is 1.5"),
        ({"extractor": "topp"}, "extractor is 'topp'; allowed: topk, contiguous"),
        ({"seeds": 0}, "seeds is 0"),
        ({"limit": 0}, "limit is 0"),
        ({"methods": "atention"}, "Did you mean 'attention'"),
        ({"objective": "salos"}, "There is no term 'salos'"),
        ({"ood": [toy()]}, "The corpus 'toy' is named twice"),
        ({"ood": [replace(toy(), name="same")]}, None),
        ({"ood": [Dataset("bare", ("bad", "good"), {"train": ()})]}, "bare has no test split"),
    ],
)
def test_mistakes_are_named_before_anything_is_written(change: dict[str, Any], said: str | None, tmp_path: Path):
    if said is None:  # a corpus whose every text is in the training data
        base = toy()
        change = {"ood": [Dataset("same", base.labels, {"test": base.splits["train"][:3]})]}
        said = "Every test text of same also stands in the training data"
    with pytest.raises(InputError, match=said):
        job("bilstm", tmp_path / "job", **change)
    assert not (tmp_path / "job").exists()


def test_a_text_without_words_is_refused_at_once(tmp_path: Path):
    base = toy(8, 4, 4)
    empty = replace(base, splits={**base.splits, "test": (*base.splits["test"], Example("void", " \n ", 0))})
    with pytest.raises(InputError, match=r"Example 'void' \(test\) has no words to select from"):
        fresh(empty, "bilstm", out=tmp_path / "job", progress=False)
    bare = replace(base, splits={"train": base.splits["train"]})
    with pytest.raises(InputError, match="toy has no test split"):
        fresh(bare, "bilstm", out=tmp_path / "job", progress=False)


def test_texts_of_other_corpora_that_were_learnt_from_are_dropped_and_counted(model: str, tmp_path: Path):
    mixed = (*toy().splits["train"][:5], *other().splits["test"])
    found = job(model, tmp_path / "job", ood=[Dataset("mixed", ("bad", "good"), {"test": mixed})])
    assert found.summary["dropped"] == {"mixed": 5}
    assert "5 texts of mixed also stand in the training data and were dropped." in str(found)


def test_texts_too_long_to_explain_whole_are_counted(model: str, tmp_path: Path):
    base = toy(12, 4, 4)
    long = replace(base.splits["test"][0], id="long", text=" ".join([base.splits["test"][0].text] * 30))
    data = replace(base, splits={**base.splits, "test": (*base.splits["test"], long)})
    with pytest.warns(UserWarning, match="1 of 5 texts are longer"):
        found = fresh(data, model, config=replace(CONFIG, epochs=1), out=tmp_path / "job", progress=False)
    assert found.summary["cut"]["test"] == 1
    assert "1 of 5 texts of test are longer than the model reads" in str(found)


def test_the_commands_on_the_page_name_what_exists():
    page = (Path(__file__).parents[2] / "docs" / "fresh.md").read_text(encoding="utf-8")
    commands = [
        shlex.split(line.replace("\\\n", " ")) for line in re.findall(r"veridical fresh (--(?:[^`]|\n)+)", page)
    ]
    assert commands
    lines = re.findall(r'veridical run (\S+) --only "([^"]+)"', page)
    assert len(lines) == 3
    for path, name in lines:
        assert name in [line.name for line in read(Path(__file__).parents[2] / path)]
    for words in commands:
        given = list(zip(words[::2], words[1::2], strict=True))
        for option, value in given:
            if option == "--method":
                methods.choose_all(value)
            elif option == "--objective":
                objective(value)
            elif option in ("--data", "--ood"):
                assert all(name in datasets for name in value.split(","))
        build(TrainConfig, merge({}, [v for o, v in given if o == "--set"]).get("train", {}))


# -- the command line ---------------------------------------------------------------------------------------


def command(*args: Any) -> Any:
    return CliRunner().invoke(app, ["fresh", *map(str, args)])


def test_the_command_prints_the_table_and_the_folder(tmp_path: Path):
    out = tmp_path / "job"
    same = ("--data", "planted", "--model", "bilstm", "--limit", 30, "--set", "train.epochs=1", "--out", out)
    result = command(*same, "--method", "attention,gradient", "--ratio", 0.5)
    assert result.exit_code == 0, result.output
    assert "planted: macro_f1" in result.stdout
    assert result.stdout.rstrip().endswith(str(out))
    again = command(*same, "--method", "attention", "--ratio", 0.5, "--json")
    assert json.loads(again.stdout)["methods"] == ["attention", RANDOM]
    latex = command(*same, "--method", "attention", "--ratio", 0.5, "--format", "latex")
    assert r"\begin{table}" in latex.stdout
    other_settings = command(*same, "--ratio", 0.5, "--set", "rationale.epochs=2")
    assert other_settings.exit_code == 2
    assert "rationale.epochs is 1 there and 2 now" in other_settings.stderr
    wrong = command(*same, "--set", "epochs=2")
    assert wrong.exit_code == 2
    assert "There is no setting 'epochs'" in wrong.stderr
