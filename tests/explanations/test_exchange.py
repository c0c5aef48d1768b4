from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical
from tiny import FAMILIES, PAIRS, TEXTS, tiny
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.explanations.alignment import to_attributions
from veridical.explanations.exchange import COLUMNS, Reading, read_explanations, to_row, write_explanations

ENDINGS = (".parquet", ".jsonl")


def classifier(family: str = "bert", **how):
    return veridical.load(*tiny(family, **how))


def examples() -> list[Example]:
    singles = [Example(f"t{i}", text, i % 3) for i, text in enumerate(TEXTS)]
    return [*singles, *(Example(f"p{i}", text, None, question) for i, (text, question) in enumerate(PAIRS))]


def same(one, other) -> None:
    """Two attributions are equal to the last bit."""
    for name in ("ids", "types", "spans", "words", "free", "cut", "start"):
        assert getattr(one.encoded, name) == getattr(other.encoded, name)
    assert one.example == other.example
    for name in ("target", "method", "options", "cost", "sampling_error"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("scores", "probabilities"):
        assert getattr(one, name).dtype == getattr(other, name).dtype == np.float32
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("family", FAMILIES)
def test_our_own_come_back_exactly(tmp_path, family, ending):
    clf = classifier(family, pair=True) if family == "bilstm" else classifier(family)
    texts = examples()[-3:] if family == "bilstm" else examples()
    found = veridical.explain(clf, texts, ["input_x_gradient:aggregate=l2", "occlusion", "lime:samples=20"])
    sent = [one for explanations in found.values() for one in explanations]
    path = write_explanations(tmp_path / f"scores{ending}", sent)
    back = to_attributions(clf, read_explanations(path))
    assert len(back) == len(sent)
    for one, other in zip(sent, back, strict=True):
        same(one, other)


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_from_before_the_sampling_error_was_kept_are_read(tmp_path, ending):
    clf = classifier()
    sent = veridical.explain(clf, TEXTS[2], "lime:samples=20")
    assert sent[0].sampling_error is not None
    path = write_explanations(tmp_path / f"scores{ending}", sent)
    if ending == ".parquet":
        store.write_parquet(path, store.read_parquet(path).drop_columns(["sampling_error"]))
    else:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        store.write_jsonl(path, [{k: v for k, v in row.items() if k != "sampling_error"} for row in rows])
    (back,) = to_attributions(clf, read_explanations(path))
    assert back.sampling_error is None
    np.testing.assert_array_equal(back.scores, sent[0].scores)


@pytest.mark.parametrize("ending", ENDINGS)
def test_windows_of_a_long_text_come_back_exactly(tmp_path, ending):
    clf = classifier()
    sent = veridical.explain(clf, ["good film " * 60, "short"], "gradient", overlap=8)
    path = write_explanations(tmp_path / f"scores{ending}", sent)
    for one, other in zip(sent, to_attributions(clf, read_explanations(path)), strict=True):
        same(one, other)


def test_multi_label_and_unlabelled_examples(tmp_path):
    clf = classifier("bert", problem_type="multi_label_classification")
    held = [Example("a", "good film", (0, 2)), Example("b", "bad film", ()), Example("c", "the film")]
    for ending in ENDINGS:
        path = write_explanations(tmp_path / f"scores{ending}", veridical.explain(clf, held, "gradient"))
        assert [one.example for one in to_attributions(clf, read_explanations(path))] == held


def test_a_row_has_the_columns_of_the_schema(tmp_path):
    clf = classifier()
    (one,) = veridical.explain(clf, "a good film", "gradient")
    assert tuple(to_row(one)) == COLUMNS
    path = write_explanations(tmp_path / "x.jsonl", [one])
    assert tuple(json.loads(path.read_text())) == COLUMNS


def test_rationales_come_from_the_data_when_it_is_given(tmp_path):
    clf = classifier()
    held = [Example("a", "good film", 1, rationale=((0, 4),))]
    path = write_explanations(tmp_path / "x.parquet", veridical.explain(clf, held, "gradient"))
    (back,) = to_attributions(clf, read_explanations(path), held)
    assert back.example is held[0]


# -- made elsewhere -----------------------------------------------------------------------------------------


def rows_of(tmp_path, *rows: dict) -> list[Reading]:
    path = tmp_path / "theirs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_explanations(path)


def test_the_least_that_is_needed(tmp_path):
    clf = classifier()
    text = "An unbelievable film!"
    (found,) = to_attributions(clf, rows_of(tmp_path, {"text": text, "method": "m", "scores": [0.5, 2, -1]}))
    assert found.method == "m"
    assert found.options == {}
    assert found.target == int(found.probabilities.argmax())
    own = {word: found.scores[[i for i, w in enumerate(found.encoded.words) if w == word]] for word in range(3)}
    assert own[0].sum() == pytest.approx(0.5)
    # un ##believ ##able: 2, 6 and 4 of 12 characters
    np.testing.assert_allclose(own[1], [2 * 2 / 12, 2 * 6 / 12, 2 * 4 / 12], rtol=1e-6)
    np.testing.assert_allclose(own[2], [-0.8, -0.2], rtol=1e-6)  # film and its exclamation mark


def test_by_id_by_text_and_by_name_of_the_class(tmp_path):
    clf = classifier()
    known = [Example("a", "good film"), Example("b", "bad film")]
    rows = rows_of(
        tmp_path,
        {"id": "b", "method": "m", "scores": [1, 0], "target": 2},
        {"text": "good film", "method": "m", "scores": [1, 0], "target_name": clf.labels[1]},
    )
    first, second = to_attributions(clf, rows, known)
    assert (first.example, first.target) == (known[1], 2)
    assert (second.example, second.target) == (known[0], 1)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("family", ["bert", "roberta", "deberta_v2"])
def test_totals_are_kept_whatever_the_units(family, data):
    clf = classifier(family)
    text = data.draw(st.sampled_from(TEXTS))
    cuts = data.draw(st.sets(st.integers(0, len(text)), min_size=2))
    edges = sorted(cuts)
    spans = tuple(pairwise(edges))
    scores = data.draw(st.lists(st.floats(-10, 10, width=32), min_size=len(spans), max_size=len(spans)).map(np.array))
    row = Reading("here", "m", scores, text=text, spans=spans)
    (found,) = to_attributions(clf, [row])
    assert float(found.scores.sum()) == pytest.approx(float(scores.sum()), abs=1e-4)
    assert not found.scores[~np.array(found.encoded.free)].any()


def test_equal_spans_map_one_to_one():
    clf = classifier("roberta")  # the bytes of an emoji share a span
    (encoded,) = clf.encode([Example("0", TEXTS[3])])
    free = np.array(encoded.free)
    scores = np.arange(1.0, free.sum() + 1)
    spans = tuple(span for span, own in zip(encoded.spans, encoded.free, strict=True) if own)
    row = Reading("here", "m", scores, text=TEXTS[3], spans=spans, free=(True,) * len(spans))
    (found,) = to_attributions(clf, [row])
    np.testing.assert_array_equal(found.scores[free], scores)


GOOD = {"text": "a good film", "method": "m", "scores": [1, 2, 3]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": None}, "neither a text nor an id"),
        ({"method": None}, "no method"),
        ({"scores": None}, "no scores"),
        ({"scores": [1, 2]}, "2 scores for 3 words"),
        ({"scores": [1, float("nan"), 2]}, "score 2 is nan"),
        ({"scores": [1, float("inf"), 2]}, "score 2 is inf"),
        ({"scores": [1, "x", 2]}, "scores holds 'x'"),
        ({"scores": 3}, "scores is 3"),
        ({"text": 7}, "text is 7"),
        ({"starts": [0, 2, 7]}, "starts only"),
        ({"starts": [0, 2], "ends": [1, 6]}, "3 scores but 2 starts"),
        ({"starts": [0, 2, 7], "ends": [1, 6, 12]}, "characters 7 to 12, outside the text of 11"),
        ({"starts": [0, 2, -1], "ends": [1, 6, 11]}, "characters -1 to 11, outside"),
        ({"starts": [0, 2, 9], "ends": [1, 6, 8]}, "characters 9 to 8, outside"),
        ({"starts": [0, 0, 2], "ends": [0, 1, 6]}, "covers no character"),
        ({"free": [True]}, "3 scores but 1 free"),
        ({"options": "steps=3"}, "options is 'steps=3'"),
        ({"label": "good"}, "label is 'good'"),
        ({"target": 9}, "target 9 is not a class"),
        ({"target": "x"}, "target 'x' is not a class"),
        ({"probabilities": [0.5, 0.5]}, "2 probabilities for 3 classes"),
        ({"text": " "}, "the text is empty"),
    ],
)
def test_mistakes_name_file_row_and_remedy(tmp_path, change, said):
    row = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(InputError) as mistake:
        to_attributions(classifier(), rows_of(tmp_path, GOOD, row))
    assert f"{tmp_path / 'theirs.jsonl'}, line 2: " in str(mistake.value)
    assert said in str(mistake.value)


def test_a_parquet_file_counts_rows(tmp_path):
    path = tmp_path / "theirs.parquet"
    from veridical.core import store

    store.write_parquet(path, {"text": ["a", "b c"], "method": ["m", "m"], "scores": [[1.0], [1.0]]})
    with pytest.raises(InputError, match=r"theirs\.parquet, row 2: there are 1 scores for 2 words"):
        to_attributions(classifier(), read_explanations(path))


def test_unknown_ids_and_changed_texts(tmp_path):
    clf, known = classifier(), [Example("a", "good film")]
    with pytest.raises(InputError, match="no example with id 'z'"):
        to_attributions(clf, rows_of(tmp_path, {**GOOD, "id": "z"}), known)
    with pytest.raises(InputError, match="no example with text 'a good film'"):
        to_attributions(clf, rows_of(tmp_path, GOOD), known)
    with pytest.raises(InputError, match="the text of id 'a' is not the one in the data"):
        to_attributions(clf, rows_of(tmp_path, {**GOOD, "id": "a"}), known)
    with pytest.raises(InputError, match="there is no text; give it, or the data"):
        to_attributions(clf, rows_of(tmp_path, {"id": "a", "method": "m", "scores": [1]}))


def test_scores_of_what_the_model_does_not_read(tmp_path):
    clf, text = classifier(), "good film " * 60
    scores = [1.0] * 120
    with pytest.raises(InputError, match="the model reads only the first"):
        to_attributions(clf, rows_of(tmp_path, {"text": text, "method": "m", "scores": scores}))
    read = [1.0] * 50 + [0.0] * 70
    (found,) = to_attributions(clf, rows_of(tmp_path, {"text": text, "method": "m", "scores": read}))
    assert found.scores.sum() == pytest.approx(50)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", b"", "neither .parquet nor .jsonl"),
        ("x.jsonl", b"{", "line 1: this is not JSON"),
        ("x.jsonl", b"[1]", "line 1: this is not an object"),
        ("x.jsonl", b"\xff\xfe", "not UTF-8"),
        ("x.parquet", b"nonsense", "cannot be read as Parquet"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_explanations(path)


def test_a_missing_file():
    with pytest.raises(InputError, match=r"There is no file 'nowhere\.parquet'"):
        read_explanations("nowhere.parquet")
