"""The grammar: what is written reads back, and what people typed before the grammar had one home is read as it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import veridical
from veridical.core.errors import InputError
from veridical.core.spec import INSIDE, Spec, base_name, listed, pair, slug

ROOT = Path(veridical.__file__).parent
# Text that is mostly made of what the grammar itself uses.
ODD = st.text(st.sampled_from("ab:/=,+.-@ \n\u00e9"), max_size=24)
WORD = st.text(st.sampled_from("abc_12"), min_size=1, max_size=6)
VALUE = st.text(st.sampled_from("ab1.+-@\u00e9\\"), max_size=8)
SPECS = st.builds(Spec, WORD, st.dictionaries(WORD, VALUE, max_size=3))


@given(ODD | st.text())
def test_every_text_is_some_spec_and_its_written_form_reads_back(text):
    spec = Spec.read(text)
    assert Spec.read(spec.write()) == spec


@given(ODD | st.text(), st.dictionaries(WORD, ODD | st.text(), max_size=3))
def test_a_spec_that_exists_can_be_written_and_any_other_is_refused(name, options):
    try:
        spec = Spec(name, options)
    except InputError:
        text = ":".join([name, *(f"{key}={value}" for key, value in options.items())])
        reread = Spec.read(text)
        assert (reread.name, reread.options) != (name, options)
        return
    assert Spec.read(spec.write()) == spec


@given(SPECS)
def test_a_plain_spec_can_always_be_written_also_inside_an_option(spec):
    outer = Spec("term", {"method": spec.write(INSIDE)})
    assert Spec.read(Spec.read(outer.write()).options["method"], INSIDE) == spec


@given(st.lists(SPECS, max_size=4))
def test_lists_are_split_where_they_were_joined(specs):
    texts = [spec.write() for spec in specs]
    assert listed(",".join(texts)) == listed(texts) == listed(", ".join([*texts, ""])) == texts
    assert [base_name(text) for text in texts] == [spec.name for spec in specs]


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("attention", "attention", {}),
        (" attention: ", "attention", {}),
        ("bilstm:hidden=32:vectors=my file.txt", "bilstm", {"hidden": "32", "vectors": "my file.txt"}),
        ("hutto/movies:neutral=0.3", "hutto/movies", {"neutral": "0.3"}),
        ("babi/1:path=C:/babi:size=5", "babi/1", {"path": "C:/babi", "size": "5"}),
        ("hub:owner/name:config@v1:text=review", "hub:owner/name:config@v1", {"text": "review"}),
        ("folder/a:b.csv:text=x=y", "folder/a:b.csv", {"text": "x=y"}),
        ("0.035+0.031:lr=0.05", "0.035+0.031", {"lr": "0.05"}),
        ("a::b=1:b=2", "a", {"b": "2"}),
        ("a: b = 1 :no-such.key=", "a", {"b": "1", "no-such.key": ""}),
        ("explanation:method=alti/layer=3", "explanation", {"method": "alti/layer=3"}),
    ],
)
def test_what_people_type(text, name, options):
    assert Spec.read(text) == Spec(name, options)


def test_a_spec_inside_an_option_may_hold_a_path():
    assert Spec.read("lexicon/file=my/words.tsv", INSIDE) == Spec("lexicon", {"file": "my/words.tsv"})


def test_a_name_is_split_at_its_first_colon():
    assert Spec.read("hub:owner/name:config@v1:text=review").head == ("hub", "owner/name:config@v1")
    assert Spec.read("random:seed=3").head == ("random", "")


def test_nobody_else_splits_specs():
    splits = re.compile(r"""partition\(["']:["']|split\(["'][:,+]["']""")
    splitting = {
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if splits.search(path.read_text("utf-8"))
    }
    assert splitting <= {
        "core/spec.py",
        "core/values.py",  # `+`, by the type of an option
        "core/device.py",  # cuda:1, as torch spells it
        "grid/job.py",  # module:function, which no user types
    }, "read it with core/spec.py: Spec.read, base_name, listed"


def test_lists_take_text_texts_or_nothing():
    assert listed("a, b,,c,") == ["a", "b", "c"]
    assert listed(["a,b", " ", "c"]) == ["a", "b", "c"]
    assert listed(None) == listed("") == []


def test_commas_of_a_name_that_is_there_are_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good, bad").mkdir()
    (tmp_path / "mine").mkdir()
    for text in ("good, bad", "good, bad:labels=no+yes"):
        assert listed(text) == [text]
    behind_options = (
        "mine:labels=no+yes,other:labels=no+yes,hutto/nyt"  # that `mine` is there parts the list all the same
    )
    assert listed(behind_options) == ["mine:labels=no+yes", "other:labels=no+yes", "hutto/nyt"]
    assert listed("mine,hutto/nyt") == ["mine", "hutto/nyt"]


def test_a_pair_is_split_at_its_first_equals_sign():
    assert pair("train.lr = 3e-5", "--set", "key=value", "x=1") == ("train.lr", "3e-5")
    assert pair("a=b=c", "--set", "key=value", "x=1") == ("a", "b=c")
    for wrong in ("a", "=b", ""):
        with pytest.raises(InputError, match=f"^The bound '{wrong}' is not TERM=VALUE; write it like a=0.1.$"):
            pair(wrong, "The bound", "TERM=VALUE", "a=0.1")


def test_folders_are_called_as_they_were(tmp_path):
    assert slug("hutto/movies:neutral=0.3") == "hutto-movies-neutral=0.3"
    assert slug("saloss:weight=0.01:prior=textrank/window=2") == "saloss-weight=0.01-prior=textrank-window=2"
    assert slug(str(tmp_path / "..") + "/" + tmp_path.name) == tmp_path.name
    assert slug("...") == "unnamed"
    assert len(slug("a" * 100)) == 80
