"""One class explained against another: the difference of their logits, whatever the method."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import veridical
from tiny import tiny
from veridical.attribution import methods
from veridical.core.errors import Caution, InputError
from veridical.explanations.page import explain_page
from veridical.model.classifier import Classifier
from veridical.model.target import read_contrast

TEXTS = ["the film was not bad at all", "a dull plot , but warm"]
FAST = {"lime": {"samples": 40, "error": 0.0}, "kernel_shap": {"samples": 40, "error": 0.0}}
FAST |= {"smoothgrad": {"samples": 4, "error": 0.0}, "integrated_gradients": {"steps": 8}}
ABOUT_A_CLASS = [method.name for method in methods if method.of_target]


def last_linear(model: torch.nn.Module, classes: int) -> torch.nn.Linear:
    return [m for m in model.modules() if isinstance(m, torch.nn.Linear) and m.out_features == classes][-1]


def pair(family: str) -> tuple[Classifier, Classifier]:
    """A model, and one whose class 0 has the logit of class 0 less that of class 2."""
    model, tokenizer = copy.deepcopy(tiny(family))  # others use them too
    other = copy.deepcopy(model)
    for each in (model, other):  # DecompX shares a bias of the head by rules that are not linear in the classes
        if last_linear(each, 3).bias is not None:
            torch.nn.init.zeros_(last_linear(each, 3).bias)
    with torch.no_grad():
        out = last_linear(other, 3).weight
        out[0] -= out[2]
    return Classifier(model, tokenizer), Classifier(other, tokenizer)


@pytest.mark.filterwarnings("ignore::veridical.core.errors.Caution")
@pytest.mark.parametrize("name", ABOUT_A_CLASS)
@pytest.mark.parametrize("family", ["bert", "modernbert", "bilstm", "llama", "gpt2"])
def test_a_contrast_is_the_difference_of_two_logits(family: str, name: str) -> None:
    if family == "bilstm" and "layers" in methods[name].needs:
        pytest.skip("it has no such layers")
    clf, shifted = pair(family)
    options = FAST.get(name, {})
    ours = veridical.explain(clf, TEXTS, name, target=0, contrast=2, **options)
    theirs = veridical.explain(shifted, TEXTS, name, target=0, **options)
    plain = veridical.explain(clf, TEXTS, name, target=0, **options)
    for one, same, alone in zip(ours, theirs, plain, strict=True):
        scale = float(np.abs(same.scores).max())
        np.testing.assert_allclose(one.scores / scale, same.scores / scale, atol=1e-4)
        if name != "best":  # an order alone, which may be the same
            assert not np.allclose(one.scores / scale, alone.scores / scale, atol=1e-3)
        assert (one.target, one.contrast) == (0, 2)
    ids = clf.tokenizer(TEXTS, padding=True, return_tensors="pt", return_special_tokens_mask=True)
    given = (ids["input_ids"], ids["attention_mask"])
    special = {"special_tokens_mask": ids["special_tokens_mask"], **options}
    tensors = [
        veridical.attribute(clf, *given, method=name, target=0, contrast=2, **special),
        veridical.attribute(shifted, *given, method=name, target=0, **special),
    ]
    torch.testing.assert_close(*tensors, atol=1e-4 * float(tensors[1].abs().max()), rtol=1e-4)


def test_captums_deeplift_contrasts_too() -> None:
    clf, shifted = pair("bert")
    (ours,) = veridical.explain(clf, TEXTS[0], "deeplift:rule=captum", target=0, contrast=2)
    (theirs,) = veridical.explain(shifted, TEXTS[0], "deeplift:rule=captum", target=0)
    np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-6)


@pytest.mark.parametrize("name", ["input_x_gradient", "occlusion"])
def test_second_is_the_likeliest_of_the_others(name: str) -> None:
    clf = Classifier(*tiny("bert"))
    for one in veridical.explain(clf, TEXTS, name, contrast="second"):
        order = np.argsort(-one.probabilities)
        assert (one.target, one.contrast) == (order[0], order[1])
        (named,) = veridical.explain(clf, one.text, name, target=int(order[0]), contrast=int(order[1]))
        np.testing.assert_allclose(one.scores, named.scores, atol=1e-6)


def test_long_texts_keep_their_contrast_in_every_window() -> None:
    clf = Classifier(*copy.deepcopy(tiny("bert")))
    long = " ".join(TEXTS * 3)
    clf.read_at_most(12)
    for name in ("integrated_gradients:steps=4", "occlusion"):
        (a,) = veridical.explain(clf, long, name, target=1, contrast=0, overlap=2)
        (b,) = veridical.explain(clf, long, name, target=0, contrast=1, overlap=2)
        np.testing.assert_allclose(a.scores, -b.scores, atol=1e-6)
        assert (a.target, a.contrast) == (1, 0)


def test_it_is_shown_kept_and_read_again(tmp_path) -> None:
    clf = Classifier(*tiny("bert"))
    explained = veridical.explain(clf, TEXTS, "occlusion", target=0, contrast=1)
    one = explained[0]
    question = f"{clf.labels[0]} rather than {clf.labels[1]}"
    assert one.question == question
    assert question in repr(one)
    assert f"{clf.labels[0]} ({one.probabilities[0]:.3f}) rather than {clf.labels[1]}" in str(one)
    assert question in repr(explained)
    page = explain_page({"occlusion": explained}, model="m", target="0", contrast=clf.labels[1])
    assert question in page
    assert f"against {clf.labels[1]}" in page
    for ending in (".parquet", ".jsonl"):
        path = veridical.write_explanations(tmp_path / f"kept{ending}", explained)
        rows = veridical.read_explanations(path)
        assert [row.contrast for row in rows] == [clf.labels[1]] * 2
        assert [a.contrast for a in veridical.to_attributions(clf, rows)] == [1, 1]
    assert set(explained.to_pandas()["contrast"]) == {clf.labels[1]}


def test_what_cannot_be_meant_is_refused() -> None:
    clf = Classifier(*tiny("bert"))
    with pytest.raises(InputError, match="Target and contrast are both"):
        veridical.explain(clf, TEXTS, "gradient", target=1, contrast=1)
    with pytest.raises(InputError, match="The contrast 'nosuch' is not a class of this model; allowed: second, 0"):
        veridical.explain(clf, TEXTS, "gradient", contrast="nosuch")
    predicted = veridical.explain(clf, TEXTS[0], "gradient")[0].target
    for name in ("gradient", "occlusion"):
        with pytest.raises(InputError, match="is the contrast itself"):
            veridical.explain(clf, TEXTS[0], name, contrast=predicted)
    with pytest.raises(InputError, match="has one class"):
        read_contrast("predicted", 0, ["only"])
    with pytest.raises(InputError, match="The contrast 7 is not a class"):
        veridical.attribute(clf, torch.tensor([[2, 5, 3]]), method="gradient", contrast=7)


def test_methods_that_know_no_class_say_so() -> None:
    clf = Classifier(*tiny("bert"))
    with pytest.warns(Caution, match="attention: scores are the same for every class"):
        veridical.explain(clf, TEXTS[0], "attention", contrast="second")
