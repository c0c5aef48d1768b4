"""Odd objects given in Python: each is refused with a sentence, an `InputError`, whatever it is."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForSequenceClassification

import veridical
from tiny import tiny
from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.records import Dataset, Example
from veridical.model.classifier import Classifier
from veridical.model.load import load

HALF = "a \ud83d b"
HUGE = 10**5000


@pytest.fixture(scope="module")
def clf() -> Classifier:
    return load(*tiny("bert"))


# -- texts --------------------------------------------------------------------------------------------------

TEXTS: dict[str, Any] = {
    "half a character": HALF,
    "half a character in a list": ["good", HALF],
    "half a character in a pair": ("good", HALF),
    "half a character in a dict": {"text": HALF},
    "half a character in an id": {"text": "good", "id": HALF},
    "half a character in a context": {"text": "good", "context": HALF},
    "half a character in an Example": Example("1", HALF),
    "half a character in an Example's id": Example(HALF, "good"),
    "half a character in an Example's context": Example("1", "good", context=HALF),
    "half a character in a Dataset": Dataset("d", (), {"test": (Example("1", HALF),)}),
    "a number": 3,
    "a number of 5,000 digits": HUGE,
    "numbers": [1, 2],
    "None": None,
    "Nones": [None],
    "NaN": math.nan,
    "bytes": b"good",
    "bytes in a list": [b"good"],
    "an array": np.zeros(3),
    "a tensor": torch.zeros(3),
    "a set": {"good"},
    "a function": print,
    "a class": str,
    "a range": range(3),
    "nothing": "",
    "white space": " \n\t",
    "nothing in a list": ["good", ""],
    "a list in a list": [["good"]],
    "an empty dict": {},
    "a dict of numbers": {"text": 3},
    "a dict of bytes": {"text": b"good"},
    "a dict of 5,000 digits": {"text": HUGE},
    "an id of 5,000 digits": {"text": "good", "id": [HUGE]},
    "three in a tuple": ("a", "b", 3),
    "a path": Path("good"),
    "itself": (lambda held: held.append(held) or held)([]),
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("verb", [veridical.explain, veridical.evaluate], ids=["explain", "evaluate"])
def test_texts(verb: Callable[..., Any], case: str, clf: Classifier) -> None:
    with pytest.raises(InputError) as refused:
        verb(clf, copy.copy(TEXTS[case]), "random")
    assert len(str(refused.value)) < 1000


# -- options ------------------------------------------------------------------------------------------------

ODD: dict[str, Any] = {
    "None": None,
    "a text": "x",
    "nothing": "",
    "half a character": HALF,
    "a number of 5,000 digits": HUGE,
    "minus a number of 5,000 digits": -HUGE,
    "half a number": 0.5,
    "NaN": math.nan,
    "infinity": math.inf,
    "a complex number": 1j,
    "a truth": True,
    "a list": [1],
    "a list of texts": ["x"],
    "an array": np.arange(3),
    "a tensor": torch.arange(3),
    "a dict": {"a": 1},
    "bytes": b"1",
    "a function": print,
    "an object": object(),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("option", ["samples", "seed"])
def test_options_of_methods(option: str, case: str, clf: Classifier) -> None:
    with pytest.raises(
        InputError, match=rf"option '{option}' of attribution method 'lime' is .*; it must be"
    ) as refused:
        veridical.explain(clf, "good", "lime", **{option: ODD[case]})
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("case", ODD)
def test_words_of_methods(case: str, clf: Classifier) -> None:
    with pytest.raises(InputError, match=r"option 'by' of attribution method 'occlusion' is .*; allowed: delete"):
        veridical.explain(clf, "good", "occlusion", by=ODD[case])


@pytest.mark.parametrize("case", [case for case in ODD if case not in ("None", "nothing", "a list of texts")])
def test_names_of_methods_and_metrics(case: str, clf: Classifier) -> None:
    for given in (ODD[case], [ODD[case]]):
        with pytest.raises(InputError):
            veridical.evaluate(clf, "good", given, "sparsity")
        with pytest.raises(InputError):
            veridical.evaluate(clf, "good", "random", given)


@pytest.mark.parametrize(
    ("option", "case"),
    # So many texts or draws are what was asked for: as many as there are, or for ever.
    [
        (o, c)
        for o in ("limit", "seed", "draws")
        for c in ODD
        if c != "None" and (o == "seed" or not c.startswith("a num"))
    ],
)
def test_numbers_of_verbs(option: str, case: str, tmp_path: Path) -> None:
    verb: Any = veridical.guidance if option == "draws" else veridical.audit
    given = {"base": "x", "guided": {"a": "y"}} if option == "draws" else {"model": "x"}
    with pytest.raises(InputError, match=f"^{option} is "):
        verb(**given, data="planted", out=tmp_path / "out", **{option: ODD[case]})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("case", [case for case in ODD if case != "a truth"])  # which is 1 to Python
def test_targets(case: str, clf: Classifier) -> None:
    with pytest.raises(InputError):
        veridical.explain(clf, "good", "random", target=ODD[case])


@pytest.mark.parametrize("case", [case for case in ODD if case != "a text"])
def test_models(case: str) -> None:
    with pytest.raises(InputError):
        load(ODD[case])


# What every function takes in whatever place; a value may be allowed in some of them.
CALLS: dict[str, Callable[[Classifier, Any], Any]] = {
    "load_data spec": lambda clf, odd: veridical.load_data(odd),
    "load_data limit": lambda clf, odd: veridical.load_data("planted:size=40", limit=odd),
    "load_data seed": lambda clf, odd: veridical.load_data("planted:size=40", seed=odd),
    "load_data splits": lambda clf, odd: veridical.load_data("planted:size=40", splits=odd),
    "load_data text": lambda clf, odd: veridical.load_data([{"text": "a"}], text=odd),
    "load_data labels": lambda clf, odd: veridical.load_data([{"text": "a", "label": 0}], labels=odd),
    "explain model": lambda clf, odd: veridical.explain(odd, "good film"),
    "explain method": lambda clf, odd: veridical.explain(clf, "good film", odd),
    "explain context": lambda clf, odd: veridical.explain(clf, "good film", "random", context=odd),
    "explain overlap": lambda clf, odd: veridical.explain(clf, "good film", "random", overlap=odd),
    "attribute model": lambda clf, odd: veridical.attribute(odd, IDS),
    "attribute method": lambda clf, odd: veridical.attribute(clf.model, IDS, method=odd),
    "evaluate controls": lambda clf, odd: veridical.evaluate(clf, "good", "random", "sparsity", controls=odd),
    "evaluate explanations": lambda clf, odd: veridical.evaluate(clf, "good", "random", "sparsity", explanations=odd),
    "audit by": lambda clf, odd: veridical.audit("x", "planted", out="out", by=odd),
    "audit ood": lambda clf, odd: veridical.audit("x", "planted", out="out", ood=odd),
    "audit model": lambda clf, odd: veridical.audit(odd, "planted:size=40", out="out"),
    "audit data": lambda clf, odd: veridical.audit("x", odd, out="out"),
    "train model": lambda clf, odd: veridical.train("no-such-data", odd),
    "train config": lambda clf, odd: veridical.train("no-such-data", "bilstm", config=odd),
    "train objective": lambda clf, odd: veridical.train("no-such-data", "bilstm", objective=odd),
    "train out": lambda clf, odd: veridical.train("no-such-data", "bilstm", out=odd),
    "status": lambda clf, odd: veridical.status(odd),
    "robustness models": lambda clf, odd: veridical.robustness(odd, "good"),
    "attack changes": lambda clf, odd: veridical.attack(clf, [{"text": "good"}], changes=odd),
    "pos models": lambda clf, odd: veridical.pos(odd, "planted:size=40"),
    "roar methods": lambda clf, odd: veridical.roar("no-such-data", "bilstm", out="out", methods=odd),
    "roar shard": lambda clf, odd: veridical.roar("no-such-data", "bilstm", out="out", shard=odd),
    "fresh support": lambda clf, odd: veridical.fresh("no-such-data", "bilstm", out="out", support=odd),
    "guidance base": lambda clf, odd: veridical.guidance(odd, {"a": "x"}, "planted:size=40", out="out"),
    "guidance guided": lambda clf, odd: veridical.guidance("x", odd, "planted:size=40", out="out"),
}
MAY = ("train config",)  # a dict of settings
OFTEN = ("a number of 5,000 digits", "half a character", "an array", "an object")  # the others under the marker


@pytest.mark.parametrize("case", [pytest.param(c, marks=[] if c in OFTEN else [pytest.mark.hostile]) for c in ODD])
@pytest.mark.parametrize("call", CALLS)
def test_whatever_is_given_is_taken_or_refused_in_a_sentence(
    call: str, case: str, clf: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sentence = ""
    try:
        CALLS[call](clf, ODD[case])
    except InputError as refused:
        sentence = str(refused)
    assert "\n" not in sentence
    assert len(sentence) < 1000
    assert sentence or call in MAY or case not in ("an object", "a function", "half a character", "a dict")
    assert not list(tmp_path.iterdir())


# -- tensors ------------------------------------------------------------------------------------------------

IDS = torch.tensor([[5, 6, 7]])
TENSORS: dict[str, dict[str, Any]] = {
    "a list": {"input_ids": [[5, 6]]},
    "None": {"input_ids": None},
    "an array": {"input_ids": np.array([[5, 6]])},
    "floats": {"input_ids": IDS.float()},
    "truths": {"input_ids": IDS.bool()},
    "one dimension": {"input_ids": IDS[0]},
    "three dimensions": {"input_ids": IDS[None]},
    "no tokens": {"input_ids": IDS[:, :0]},
    "no rows": {"input_ids": IDS[:0]},
    "ids past the end": {"input_ids": IDS + 10_000},
    "ids below 0": {"input_ids": IDS - 10},
    "a mask of another shape": {"input_ids": IDS, "attention_mask": IDS[:, :2]},
    "a mask of nothing": {"input_ids": IDS, "attention_mask": IDS * 0},
    "a mask that is a list": {"input_ids": IDS, "attention_mask": [[1, 1, 1]]},
    "a target past the end": {"input_ids": IDS, "target": 99},
    "a target below 0": {"input_ids": IDS, "target": -1},
    "half a target": {"input_ids": IDS, "target": 0.5},
    "a target that is a text": {"input_ids": IDS, "target": "x"},
    "a target of 5,000 digits": {"input_ids": IDS, "target": HUGE},
    "too many targets": {"input_ids": IDS, "target": torch.tensor([0, 1])},
    "floats for targets": {"input_ids": IDS, "target": torch.tensor([0.5])},
    "an unknown option": {"input_ids": IDS, "stepz": 3},
    "a mask of no numbers": {"input_ids": IDS, "attention_mask": IDS * float("nan")},
    "half a mask": {"input_ids": IDS, "attention_mask": IDS * 0 + 0.5},
    "a mask below 0": {"input_ids": IDS, "attention_mask": IDS * 0 - 1},
    "a mask of ids": {"input_ids": IDS, "attention_mask": IDS},
    "a special mask of ids": {"input_ids": IDS, "special_tokens_mask": IDS},
    "segments past the end": {"input_ids": IDS, "token_type_ids": IDS * 0 + 7},
    "segments below 0": {"input_ids": IDS, "token_type_ids": IDS * 0 - 1},
    "half a segment": {"input_ids": IDS, "token_type_ids": IDS * 0 + 0.5},
    "too long": {"input_ids": torch.full((1, 500), 5)},
    "sparse": {"input_ids": IDS.to_sparse()},
    "without numbers": {"input_ids": IDS.to("meta")},
    "a complex target": {"input_ids": IDS, "target": 1j},
    "floats in a list of targets": {"input_ids": IDS, "target": [1.0]},
}


@pytest.mark.parametrize("case", TENSORS)
@pytest.mark.parametrize("method", ["gradient", "occlusion"])
def test_tensors(case: str, method: str, clf: Classifier) -> None:
    with pytest.raises(InputError):
        veridical.attribute(clf.model, **{"method": method, **TENSORS[case]})


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.int16, torch.int32])
def test_whole_numbers_of_any_width(kind: torch.dtype, clf: Classifier) -> None:
    ours, theirs = (veridical.attribute(clf.model, ids, method="gradient") for ids in (IDS, IDS.to(kind)))
    assert torch.equal(ours, theirs)


LABELS: dict[str, Any] = {
    "a class twice": ["a", "a"],
    "none": [],
    "numbers": [1, 2],
    "a text": "ab",
    "None in them": [None, "a"],
    "a space in them": [" ", "a"],
    "a set": {"a", "b"},
    "half a character": ["\ud83d", "a"],
}


@pytest.mark.parametrize("case", LABELS)
def test_names_for_a_new_head(case: str) -> None:
    sentence = r"^labels is .*; it must be a list with the name of every class, each once|^A class in labels holds half"
    with pytest.raises(InputError, match=sentence):
        load("no-such-model", labels=LABELS[case])


def test_a_head_that_is_there_is_not_named_anew() -> None:
    with pytest.raises(InputError, match="this one has its own"):
        load(*tiny("bert"), labels=["a", "b", "c"])


def test_a_model_that_classifies_nothing() -> None:
    model, tokenizer = tiny("bert")
    with pytest.raises(InputError, match=r"\(BertModel\) gives no logits, so it is no classifier"):
        veridical.explain(load(model.base_model, tokenizer), "good", "gradient")


ASKING = [method.name for method in methods if method.asks]


@pytest.mark.parametrize("name", ASKING)
def test_a_text_of_which_nothing_is_left_is_not_asked_about(name: str, clf: Classifier) -> None:
    with pytest.raises(InputError, match=r"Nothing of a text would be left to read.*special_tokens_mask"):
        veridical.attribute(clf.model, IDS[:, :1], method=name)
    special = torch.tensor([[1, 0, 1]])
    scores = veridical.attribute(clf.model, torch.tensor([[2, 30, 3]]), method=name, special_tokens_mask=special)
    assert scores[0, [0, 2]].tolist() == [0, 0]


@pytest.mark.parametrize("name", [name for name in ASKING if name != "occlusion"])
def test_nor_in_a_batch_of_others(name: str, clf: Classifier) -> None:
    with pytest.raises(InputError, match="Nothing of a text would be left to read"):
        veridical.attribute(clf.model, torch.tensor([[5, 6, 7], [8, 9, 10]]), method=name)


# -- a decoder ----------------------------------------------------------------------------------------------


def llama(layers: int, scale: float) -> LlamaForSequenceClassification:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = LlamaConfig(vocab_size=145, num_hidden_layers=layers, pad_token_id=0, num_labels=3, **sizes)
    model = LlamaForSequenceClassification(config).eval()
    for weight in model.parameters():
        weight.data.mul_(scale if weight.ndim > 1 else 1)
    return model


@pytest.mark.parametrize(("layers", "scale"), [(2, 1), (12, 1), (2, 30), (8, 30)])
@pytest.mark.parametrize("first", ["free", "kept"])
def test_deeplift_is_complete_where_the_baseline_has_no_length(layers: int, scale: float, first: str) -> None:
    """RMSNorm multiplies a vector of zeros by 1 / sqrt(eps): shared evenly, multipliers grew a thousandfold a norm."""
    model = llama(layers, scale)
    ids = torch.randint(5, 140, (1, 9), generator=torch.Generator().manual_seed(1))
    special = torch.zeros_like(ids)
    special[0, 0] = int(first == "kept")
    scores = veridical.attribute(model, ids, method="deeplift", target=1, special_tokens_mask=special)
    with torch.no_grad():
        embeddings = model.get_input_embeddings()(ids)
        whole, nothing = (
            model.score(model.model(inputs_embeds=given).last_hidden_state[:, -1])[0, 1].item()
            for given in (embeddings, embeddings * special[..., None])
        )
    assert scores.sum().item() == pytest.approx(whole - nothing, rel=5e-3, abs=1e-4)


def test_scores_that_are_not_finite_are_refused(clf: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = methods["random"]
    nothing = copy.copy(entry)
    object.__setattr__(
        nothing, "run", lambda clf, batch, target: target(clf.forward(batch).logits)[:, None] / 0 * batch.mask
    )
    monkeypatch.setitem(methods._entries, "random", nothing)
    for call in (
        lambda: veridical.attribute(clf.model, IDS, method="random"),
        lambda: veridical.explain(clf, "good", "random"),
    ):
        with pytest.raises(InputError, match="random gave a score that is not a finite number"):
            call()
