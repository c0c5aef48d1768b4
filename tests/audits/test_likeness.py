"""How alike two models explain the same texts: from attributions, and from what audits stored."""

from __future__ import annotations

import csv
import io
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

import veridical
from goldens import GOLDEN
from tiny import tiny
from veridical.attribution import methods
from veridical.audits.compare import compare, to_csv, to_latex, to_text
from veridical.audits.likeness import likeness
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Attribution, Dataset, Encoded, Example
from veridical.explanations.explain import attributions
from veridical.model.classifier import Classifier


def explanation(scores, *, lengths=None, text="a b c d e f g h i j k l", name="one", target=0) -> Attribution:
    """Between two special tokens that have scores of their own; `lengths` are the tokens' characters in a run."""
    n = len(scores)
    lengths = [1] * n if lengths is None else lengths
    starts = [i for i, c in enumerate(text) if not c.isspace()]
    spans, at = [], 0
    for length in lengths:
        spans.append((starts[at], starts[at] + length))
        at += length
    encoded = Encoded(
        Example(name, text),
        ids=tuple(range(n + 2)),
        types=(0,) * (n + 2),
        spans=((0, 0), *spans, (0, 0)),
        words=(-1,) * (n + 2),  # not looked at: words come from the characters
        free=(False, *[True] * n, False),
    )
    return Attribution(encoded, target, np.array([9, *scores, -9], dtype=np.float32), np.array([1.0]), "mine")


# -- two lists of attributions ------------------------------------------------------------------------------


def test_the_golden_figures():
    given, expected = (GOLDEN["kendall_tau"][key] for key in ("inputs", "expected"))
    assert likeness([explanation(given["a"])], [explanation(given["b"])]).tau[0] == pytest.approx(expected["tau"])
    tied = likeness([explanation(given["tied_a"])], [explanation(given["tied_b"])])
    assert tied.tau[0] == pytest.approx(expected["tau_b_with_ties"])
    given, expected = (GOLDEN["jaccard_at_25"][key] for key in ("inputs", "expected"))
    assert likeness([explanation(given["a"])], [explanation(given["b"])]).jaccard[0] == pytest.approx(
        expected["jaccard"]
    )
    ten = given["ten_tokens"]
    assert likeness([explanation(ten["a"])], [explanation(ten["b"])]).jaccard == (
        expected["ten_tokens"]["ceil"]["jaccard"],
    )


scores = st.lists(st.integers(-3, 3), min_size=2, max_size=12)


@settings(max_examples=60, deadline=None)
@given(scores, st.randoms(use_true_random=False))
def test_it_is_the_tau_of_the_free_tokens_and_symmetric(one, random):
    other = [random.randint(-3, 3) for _ in one]
    found = likeness([explanation(one)], [explanation(other)])
    back = likeness([explanation(other)], [explanation(one)])
    expected = kendalltau(one, other).statistic
    assert found.level == "token"
    assert (found.tau, found.jaccard) == (back.tau, back.jaccard)
    if np.isnan(expected):
        assert found.tau == (None,)
    else:
        assert found.tau[0] == pytest.approx(expected)
    assert 0 <= found.jaccard[0] <= 1
    assert likeness([explanation(one)], [explanation(one)]).jaccard == (1.0,)


def test_the_top_quarter_is_rounded_up():
    one, other = explanation([5, 4, 3, 2, 1]), explanation([5, 1, 4, 2, 3])
    assert likeness([one], [other]).jaccard == (1 / 3,)  # two of five tokens: {a, b} and {a, c}
    assert likeness([one], [other], share=0.2).jaccard == (1.0,)
    assert likeness([one], [other], share=1).jaccard == (1.0,)


def test_sizes_are_compared_on_request():
    one, other = explanation([3, -2, 1]), explanation([-3, 2, -1])
    assert likeness([one], [other]).tau == (-1.0,)
    assert likeness([one], [other], abs=True).tau == (1.0,)


def test_models_that_cut_words_differently_are_compared_by_word():
    text = "unlikely heroes win"
    one = explanation([1, 2, 5, -1], lengths=[2, 6, 6, 3], text=text)  # un likely heroes win: 3, 5, -1
    other = explanation([4, 2, 3, 0], lengths=[8, 3, 3, 3], text=text)  # unlikely her oes win: 4, 5, 0
    found = likeness([one], [other])
    assert found.level == "word"
    assert found.tau == (1.0,)
    assert likeness([one], [one]).level == "token"
    assert likeness([one], [one], level="word").tau == (1.0,)
    with pytest.raises(InputError, match=r"text 'one' into different tokens; compare them with level='word'"):
        likeness([one], [other], level="token")
    # One text that is cut differently makes the whole comparison one of words: a mean is of one kind of unit.
    same = explanation([1, 2, 3], name="two")
    both = likeness([one, same], [other, explanation([3, 2, 1], name="two")])
    assert (both.level, both.tau) == ("word", (1.0, -1.0))


def test_words_that_one_model_did_not_read_do_not_count():
    text = "good film but long"
    whole = explanation([4, 3, 2, 9], lengths=[4, 4, 3, 4], text=text)
    cut = explanation([3, 2, 1], lengths=[4, 4, 3], text=text)
    assert likeness([whole], [cut]).tau == (1.0,)


def test_texts_are_matched_by_id_and_wording_and_classes_counted():
    a = [explanation([1, 2], name="x"), explanation([1, 2], name="y"), explanation([1, 1], name="z")]
    b = [
        explanation([2, 1], name="y", target=1),
        explanation([1, 2], name="z"),
        explanation([1, 2], name="x", text="b a"),
    ]
    found = likeness(a, b)
    assert found.texts == ("y", "z")
    assert found.tau == (-1.0, None)
    assert found.other_class == 1


def test_mistakes_are_explained():
    one = explanation([1, 2])
    with pytest.raises(InputError, match="no text in common; explain the same texts"):
        likeness([one], [explanation([1, 2], name="another")])
    with pytest.raises(InputError, match="Two explanations are of the text 'one'"):
        likeness([one, replace(one, method="yours")], [one])
    with pytest.raises(InputError, match="share is 0; it must be above 0"):
        likeness([one], [one], share=0)


# -- audits -------------------------------------------------------------------------------------------------

WORDS = "the film was not good and bad plot acting really very boring unbelievable book story end".split()
TEXTS = [" ".join(WORDS[(i * k + k) % len(WORDS)] for k in range(1, 6 + i % 5)) for i in range(1, 9)]
HOME = Dataset(
    "org/home",
    ("LABEL_0", "LABEL_1", "LABEL_2"),
    {"test": tuple(Example(str(i), f"{text} {i}", label=i % 3) for i, text in enumerate(TEXTS))},
)
METHODS = ["attention", "input_x_gradient", "random"]


def classifier(family: str, seed: int, name: str) -> Classifier:
    model, tokenizer = tiny(family)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return Classifier(model, tokenizer, name=name)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two seeds of a BERT and a RoBERTa, whose tokenizers differ: classifiers and audits."""
    root = tmp_path_factory.mktemp("audits")
    models = {
        "bert0": classifier("bert", 0, "runs/bert/seed0"),
        "bert1": classifier("bert", 1, "runs/bert/seed1"),
        "roberta": classifier("roberta", 0, "roberta"),
    }
    for name, clf in models.items():
        veridical.audit(clf, HOME, out=root / name, methods=METHODS, metrics=["sufficiency"], progress=False)
    return root, models


def only(rows, **wanted):
    [row] = [row for row in rows if all(getattr(row, key) == value for key, value in wanted.items())]
    return row


def explained_by(clf: Classifier, method: str) -> list[Attribution]:
    return attributions(clf, clf.encode(HOME.splits["test"]), methods.choose(method))


def test_stored_explanations_give_what_attributions_give(made):
    root, models = made
    table = compare([root / name for name in models])
    assert table.models == ("runs/bert", "roberta")
    for method in METHODS[:2]:
        own = {name: explained_by(clf, method) for name, clf in models.items()}
        seeds = likeness(own["bert0"], own["bert1"])
        for measure in ("tau", "jaccard"):
            row = only(table.agreements, a="runs/bert", b="runs/bert", method=method, measure=measure)
            values = [v for v in getattr(seeds, measure) if v is not None]
            assert row.mean == pytest.approx(np.mean(values), abs=1e-6)
            assert row.low <= row.mean <= row.high
            assert (row.corpus, row.level, row.runs) == ("org/home", "token", (("bert0", "bert1"),))
            assert (row.n, row.undefined) == (len(values), len(TEXTS) - len(values))
            assert (row.comparisons, row.other_class) == (len(TEXTS), seeds.other_class)
        first, second = (likeness(own[name], own["roberta"]) for name in ("bert0", "bert1"))
        row = only(table.agreements, a="runs/bert", b="roberta", method=method, measure="tau")
        assert row.level == "word"
        assert row.runs == (("bert0", "roberta"), ("bert1", "roberta"))
        assert row.values == pytest.approx((np.mean(first.tau), np.mean(second.tau)), abs=1e-6)
        assert row.mean == pytest.approx(np.mean([first.tau, second.tau]), abs=1e-6)


def test_one_figure_is_of_one_kind_of_unit(made, tmp_path):
    root, models = made
    shutil.copytree(root / "roberta", tmp_path / "third")
    summary = store.read_json(tmp_path / "third" / "summary.json")
    summary["model"]["name"] = "runs/bert/seed2"  # a seed with a tokenizer of its own
    store.write_json(tmp_path / "third" / "summary.json", summary)
    table = compare([root / "bert0", root / "bert1", tmp_path / "third"])
    row = only(table.agreements, method="attention", measure="tau")
    own = {name: explained_by(clf, "attention") for name, clf in models.items()}
    by_word = likeness(own["bert0"], own["bert1"], level="word")
    assert likeness(own["bert0"], own["bert1"]).tau != by_word.tau
    assert row.level == "word"
    assert row.values[0] == pytest.approx(np.mean(by_word.tau), abs=1e-6)


def test_random_draws_are_not_taken_for_agreement(made):
    root, _ = made
    table = compare([root / "bert0", root / "bert1"])
    assert {row.method for row in table.agreements} == {"attention", "input_x_gradient"}


def only_dict(rows, **wanted):
    [row] = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return row


def test_all_three_forms_show_it(made):
    root, models = made
    table = compare([root / name for name in models])
    row = only(table.agreements, a="runs/bert", b="roberta", method="attention", measure="tau")
    figure = f"{row.mean:.3f} [{row.low:.3f}, {row.high:.3f}]"
    text = to_text(table)
    assert "org/home: how alike models explain: runs/bert and roberta, 8 texts, word by word" in text
    assert "org/home: how alike models explain: 2 runs of runs/bert, 8 texts, token by token" in text
    assert figure in text
    latex = to_latex(table)
    mean, span = (part.replace("-", "$-$") for part in figure.split(" ", 1))
    assert f"attention & {mean}" in latex
    assert rf"{{\tiny {span}}}" in latex
    metrics = {entry.metric for entry in table.entries if entry.method}
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 2 + len(metrics)
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert len(rows) == len(table.entries) + len(table.agreements)
    shown = only_dict(rows, metric="tau between models", method="attention", model="runs/bert ~ roberta")
    assert float(shown["mean"]) == row.mean
    assert (shown["level"], shown["unit"], shown["n"]) == ("word", "texts", str(row.n))
    assert [float(value) for value in shown["values"].split()] == list(row.values)


def test_one_audit_has_no_one_to_agree_with(made):
    root, _ = made
    table = compare([root / "bert0"])
    assert table.agreements == ()
    assert table.notes == ()


def test_the_same_weights_are_no_second_model(made):
    root, _ = made
    table = compare([root / "bert0", root / "bert0"])
    assert table.agreements == ()
    assert table.notes == ("bert0 and bert0 are of the same weights: no two models or seeds.",)


def test_without_stored_explanations_there_is_a_note(made, tmp_path):
    root, _ = made
    for name in ("summary.json", "scores.parquet", "spec.json"):
        (tmp_path / "bare").mkdir(exist_ok=True)
        (tmp_path / "bare" / name).write_bytes((root / "bert1" / name).read_bytes())
    table = compare([root / "bert0", tmp_path / "bare"])
    assert table.agreements == ()
    assert table.entries
    assert table.notes == (
        "No explanations are stored in bare: how alike models explain is not said for what is there.",
    )


def test_a_method_of_an_older_version_is_not_taken_for_todays(made, tmp_path):
    root, _ = made
    copy = tmp_path / "bert1"
    shutil.copytree(root / "bert1", copy)
    folder = copy / "corpora" / "org-home" / "attributions"
    [today] = folder.glob("attention-*")
    old = folder / "attention-00000000"
    shutil.copytree(today, old)
    rows = store.read_parquet(old / "part-0000.parquet").to_pydict()
    rows["scores"] = [[-s for s in own] for own in rows["scores"]]
    store.write_parquet(old / "part-0000.parquet", rows)
    os.utime(old / "part-0000.parquet", (1, 1))
    fresh, again = (compare([root / "bert0", place]).agreements for place in (root / "bert1", copy))
    assert again == fresh
