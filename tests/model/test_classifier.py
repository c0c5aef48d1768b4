from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import pipeline

import veridical
from tiny import FAMILIES, PAIRS, TEXTS, tiny
from veridical.core.errors import InputError
from veridical.core.records import Example, Variant
from veridical.explanations.explain import attributions
from veridical.model.ask import answer, ask, batches_of, predict
from veridical.model.classifier import Classifier
from veridical.model.load import load

EXAMPLES = [Example(str(i), text) for i, text in enumerate(TEXTS)]


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_know_their_characters_and_words(family):
    clf = Classifier(*tiny(family))
    for example, e in zip(EXAMPLES, clf.encode(EXAMPLES), strict=True):
        words = example.text.split()
        special = set(clf.tokenizer.all_special_ids) - {clf.tokenizer.unk_token_id}
        assert not {e.ids[i] for i in np.flatnonzero(e.free)} & special
        assert {e.words[i] for i in np.flatnonzero(e.free)} == set(range(len(words)))
        for (start, end), word, free in zip(e.spans, e.words, e.free, strict=True):
            assert (word == -1) == (not free)
            if free and end > start:
                assert example.text[start:end].strip() == example.text[start:end]
                assert example.text[start:end] in words[word] or len(example.text[start:end].split()) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_the_encoding_is_the_tokenizers_own(family):
    model, tokenizer = tiny(family, pair=True)
    clf = Classifier(model, tokenizer)
    pairs = [Example(str(i), a, context=b) for i, (a, b) in enumerate(PAIRS)]
    for example, e in zip(pairs, clf.encode(pairs), strict=True):
        assert list(e.ids) == tokenizer(example.text, example.context)["input_ids"]
    with torch.no_grad():
        batch = tokenizer([a for a, _ in PAIRS], [b for _, b in PAIRS], padding=True, return_tensors="pt")
        expected = model(**batch).logits.numpy()
    np.testing.assert_allclose(predict(clf, clf.encode(pairs)).logits, expected, atol=2e-5)


@pytest.mark.parametrize("layout", ["usual", "scibert"])
def test_special_tokens_are_the_tokenizers_not_literal_ids(layout):
    clf = Classifier(*tiny("bert", layout=layout))
    (e,) = clf.encode([Example("a", "good film")])
    assert [clf.tokenizer.convert_ids_to_tokens(e.ids[i]) for i in (0, -1)] == ["[CLS]", "[SEP]"]
    assert e.free == (False, *[True] * (len(e.ids) - 2), False)


def long_text(words: int) -> str:
    return " ".join(("good film bad plot the acting was".split() * words)[:words])


def test_truncation_is_counted_and_said():
    clf = Classifier(*tiny("bert"), name="tiny")
    (e,) = clf.encode([Example("a", long_text(100))])
    assert len(e.ids) == clf.limit == 64
    assert e.cut == len(clf.tokenizer(long_text(100))["input_ids"]) - 64
    with pytest.warns(UserWarning, match=r"1 of 2 texts are longer than the 64 tokens tiny reads: \d+ tokens"):
        veridical.explain(clf, [long_text(100), "short"], "attention")


def test_a_context_that_leaves_no_room_is_refused():
    clf = Classifier(*tiny("bert"))
    with pytest.raises(InputError, match="leaves no room"):
        clf.encode([Example("a", "good", context=long_text(100))])


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta_v2"])
def test_windows_cover_the_text_and_keep_completeness(family):
    clf = Classifier(*tiny(family))
    example = Example("a", long_text(120))
    windows = clf.encode([example], overlap=10)
    assert len(windows) > 2
    assert all(len(w.ids) <= clf.limit and w.cut == 0 for w in windows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = veridical.explain(clf, [example], "deeplift", overlap=10)
    assert len(found.words) == 120
    assert (found.word_scores != 0).all()
    logits = predict(clf, windows).logits
    np.testing.assert_allclose(found.probabilities, clf.probabilities(torch.tensor(logits.mean(0))).numpy(), atol=1e-6)
    zeroed = []
    for w in windows:
        batch = clf.collate([w])
        with torch.no_grad():
            edit = lambda x, b=batch: torch.where(b.free[..., None], torch.zeros_like(x), x)  # noqa: E731
            zeroed.append(clf.forward(batch, edit=edit).logits.numpy()[0])
    change = logits.mean(0)[found.target] - np.mean(zeroed, 0)[found.target]
    assert found.scores.sum() == pytest.approx(change, abs=5e-5)


def test_a_text_that_fits_is_the_same_with_and_without_windows():
    clf = Classifier(*tiny("bert"))
    (plain,), (windowed,) = (veridical.explain(clf, [TEXTS[2]], "input_x_gradient", overlap=o) for o in (None, 5))
    np.testing.assert_array_equal(plain.scores, windowed.scores)


@pytest.mark.parametrize(
    ("labels", "problem", "kind"),
    [
        (3, None, "single"),
        (3, "multi_label_classification", "multi"),
        (1, None, "one_logit"),
        (2, "single_label_classification", "single"),
    ],
)
def test_heads_are_told_apart(labels, problem, kind):
    clf = Classifier(*tiny("bert", num_labels=labels, problem_type=problem))
    assert clf.kind == kind
    assert len(clf.labels) == max(labels, 2)
    found = predict(clf, clf.encode(EXAMPLES))
    with torch.no_grad():
        raw = clf.model(**clf.tokenizer(list(TEXTS), padding=True, return_tensors="pt")).logits
    expected = {
        "single": raw.softmax(-1),
        "multi": raw.sigmoid(),
        "one_logit": torch.cat([(-raw).sigmoid(), raw.sigmoid()], -1),
    }
    np.testing.assert_allclose(found.probabilities, expected[kind].numpy(), atol=1e-5)
    if kind == "one_logit":
        zero, one = (
            attributions(clf, clf.encode(EXAMPLES), veridical.attribution.methods.choose("input_x_gradient"), c)
            for c in (0, 1)
        )
        for a, b in zip(zero, one, strict=True):
            np.testing.assert_allclose(a.scores, -b.scores, atol=1e-6)


def test_a_regressor_is_refused():
    with pytest.raises(InputError, match="regressor"):
        Classifier(*tiny("bert", num_labels=1, problem_type="regression"))


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_and_loaded_in_every_way(family, tmp_path):
    model, tokenizer = tiny(family)
    clf = load(model, tokenizer)
    clf.save(tmp_path / "model")
    assert not [p for p in (tmp_path / "model").iterdir() if p.suffix in (".bin", ".pt", ".pkl")]
    again = load(tmp_path / "model")
    from_run = load(tmp_path)  # a run folder holds model/
    expected = predict(clf, clf.encode(EXAMPLES)).logits
    for other in (again, from_run):
        np.testing.assert_array_equal(predict(other, other.encode(EXAMPLES)).logits, expected)


def test_a_pipeline_is_a_classifier():
    model, tokenizer = tiny("bert")
    clf = load(pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu"))
    assert veridical.explain(clf, TEXTS[1], "attention")[0].tokens[0] == "[CLS]"


def test_new_labels_make_a_new_head_from_the_seed(tmp_path):
    load(*tiny("bert")).save(tmp_path)
    heads = [load(tmp_path, labels=["no", "yes"], seed=s).model.classifier.weight for s in (0, 0, 1)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])
    assert load(f"{tmp_path}:layers=1").model.config.num_hidden_layers == 1
    with pytest.raises(InputError, match="layers=9 is out of range"):
        load(f"{tmp_path}:layers=9")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no/such-model-here", "no model of that name could be had from the hub"),
        ("./no/such", "There is no folder"),
        ("bilstm", "train one first"),
        ("bilsm", "Did you mean 'bilstm'"),
        ("minilm:layer=3", "has no option 'layer'"),
    ],
)
def test_what_cannot_be_loaded_is_named(source, message):
    with pytest.raises(InputError, match=message):
        load(source)


def test_a_pickled_checkpoint_is_refused(tmp_path):
    model, tokenizer = tiny("bert")
    load(model, tokenizer).save(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match="safetensors"):
        load(tmp_path)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_attention_without_eager_is_an_error_not_an_empty_answer(family):
    clf = Classifier(*tiny(family))
    clf.model.set_attn_implementation("sdpa")
    with pytest.raises(RuntimeError, match="eager"):
        clf.forward(clf.collate(clf.encode(EXAMPLES[:1])), attentions=True)
    with clf.eager():
        assert clf.forward(clf.collate(clf.encode(EXAMPLES[:1])), attentions=True).attentions
    assert clf.model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("family", FAMILIES)
def test_an_edit_that_changes_nothing_changes_nothing(family):
    clf = Classifier(*tiny(family))
    batch = clf.collate(clf.encode(EXAMPLES))
    with torch.no_grad():
        plain, edited = clf.forward(batch), clf.forward(batch, edit=lambda e: e.clone())
    assert torch.equal(plain.logits, edited.logits)


def test_batches_are_padded_on_the_right():
    clf = Classifier(*tiny("roberta"))
    encoded = clf.encode(EXAMPLES)
    batch = clf.collate(encoded)
    longest = max(len(e.ids) for e in encoded)
    pad = clf.model.config.pad_token_id
    assert pad != 0
    for row, e in enumerate(encoded):
        gap = longest - len(e.ids)
        assert batch.ids[row].tolist() == [*e.ids, *[pad] * gap]
        assert batch.types[row].tolist() == [*e.types, *[0] * gap]
        assert batch.mask[row].tolist() == [*[True] * len(e.ids), *[False] * gap]
        assert batch.free[row].tolist() == [*e.free, *[False] * gap]


def test_variants_that_attend_to_all_and_to_some_share_a_batch():
    clf = Classifier(*tiny("bert"))
    batch = clf.collate_variants([Variant((1, 2, 3), (0, 0, 1)), Variant((4, 5), (0, 0), attend=(False, True))])
    assert batch.ids.tolist() == [[1, 2, 3], [4, 5, clf.model.config.pad_token_id]]
    assert batch.types.tolist() == [[0, 0, 1], [0, 0, 0]]
    assert batch.mask.tolist() == [[True, True, True], [False, True, False]]


# -- the scheduler ----------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 60), max_size=80), st.integers(10, 200))
def test_batches_hold_every_index_once_within_the_budget(lengths, budget):
    batches = batches_of(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(8, 200))
def test_lock_step_is_a_loop(order, budget):
    clf = Classifier(*tiny("bert"))
    encoded = clf.encode(EXAMPLES)

    def asker(e):
        first = yield [Variant(e.ids, e.types), Variant(e.ids, e.types)]
        second = yield [Variant(e.ids[:k], e.types[:k]) for k in range(2, len(e.ids))]
        return np.concatenate([first.logits, second.logits])

    found = ask(clf, [asker(encoded[i]) for i in order], budget=budget)
    for (value, questions), i in zip(found, order, strict=True):
        e = encoded[i]
        variants = [Variant(e.ids, e.types)] * 2 + [Variant(e.ids[:k], e.types[:k]) for k in range(2, len(e.ids))]
        alone = np.concatenate([answer(clf, [v]).logits for v in variants])
        np.testing.assert_allclose(value, alone, atol=2e-5)
        assert questions == len(set(variants))


def test_equal_questions_are_asked_once():
    clf = Classifier(*tiny("bert"))
    (e,) = clf.encode(EXAMPLES[:1])
    before = clf.forwards
    answer(clf, [Variant(e.ids, e.types)] * 5)
    assert clf.forwards == before + 1


def test_a_question_of_an_earlier_turn_is_remembered():
    clf = Classifier(*tiny("bert"))
    e = clf.encode(EXAMPLES)[2]
    cuts = [Variant(e.ids[:k], e.types[:k]) for k in range(2, len(e.ids))]

    def asker(*turns):
        answers = []
        for turn in turns:
            answers.append((yield turn))
        return np.concatenate([a.logits for a in answers]), np.concatenate([a.probabilities for a in answers])

    forwards, asked = clf.forwards, clf.asked
    (there, asked_there), (back, asked_back) = ask(clf, [asker(cuts[:4], [], cuts), asker(cuts[::-1], cuts[:1])])
    assert clf.forwards - forwards == len(cuts)
    assert clf.asked - asked == sum(len(cut.ids) for cut in cuts)
    assert asked_there == asked_back == len(cuts)
    for values, again in zip(there, back, strict=True):  # the same answer, not one that is nearly the same
        assert (values[:4] == values[4:8]).all()
        assert (values[4:] == again[-2::-1]).all()
        assert (values[0] == again[-1]).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_not_attended_to_is_invisible(family):
    """Attention mask 0 inside a text: what stands there does not matter."""
    clf = Classifier(*tiny(family))
    e = clf.encode(EXAMPLES)[2]
    attend = tuple(i != 2 for i in range(len(e.ids)))
    other = tuple(e.ids[3] if i == 2 else token for i, token in enumerate(e.ids))
    a, b = answer(clf, [Variant(e.ids, e.types, attend), Variant(other, e.types, attend)]).logits
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_saving_shows_no_bar_and_leaves_bars_as_they_were(tmp_path, capfd):
    from transformers.utils import logging

    logging.enable_progress_bar()
    load(*tiny("bert")).save(tmp_path / "model")
    assert capfd.readouterr().err == ""
    assert logging.is_progress_bar_enabled()
