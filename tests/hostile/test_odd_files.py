"""Files that are not what they should be, given to every reader: data, texts, settings, recipes, explanations."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from hostile.refusals import refusal
from tiny import tiny
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.data import load_data
from veridical.explanations.alignment import to_attributions
from veridical.explanations.exchange import read_explanations
from veridical.model.load import load

DEEP = "[" * 100_000
DIGITS = "9" * 5000
MANY = "9" * 4000  # which Python reads
GOOD = '{"text": "good", "label": 1}\n{"text": "bad", "label": 0}\n'
GOOD_TABLE = "text,label\ngood,1\nbad,0\n"


def line(**cells: object) -> str:
    return GOOD + json.dumps(cells) + "\n"


# name -> (file, content, part of the sentence)
DATA: dict[str, tuple[str, str | bytes, str]] = {
    "nested 100,000 deep": ("d.jsonl", GOOD + DEEP, "line 3: this is not JSON \\(it is nested too deeply\\)"),
    "a cell nested 100,000 deep": ("d.jsonl", GOOD + '{"text": ' + DEEP, "line 3: .*nested too deeply"),
    "objects nested 100,000 deep": ("d.jsonl", GOOD + '{"a":' * 100_000, "line 3: .*nested too deeply"),
    "a label of 5,000 digits": ("d.jsonl", GOOD + f'{{"text": "x", "label": {DIGITS}}}', "too many digits"),
    "a label of 4,000 digits": ("d.jsonl", GOOD + f'{{"text": "x", "label": {MANY}}}', "is no index of a class"),
    "a label of a billion": ("d.jsonl", line(text="x", label=10**9), "the label is 1000000000, which is no index"),
    "a label of 10,000": ("d.jsonl", line(text="x", label=10_000), "an index is below 10,000"),
    "a label that is minus 5,000 digits": ("d.jsonl", GOOD + f'{{"text": "x", "label": -{DIGITS}}}', "too many digits"),
    "a label of infinity": ("d.jsonl", GOOD + '{"text": "x", "label": 1e999}', "the label is inf"),
    "a label that is no number": ("d.jsonl", GOOD + '{"text": "x", "label": NaN}', "the label is nan"),
    "a label that is half a number": ("d.jsonl", line(text="x", label=0.5), "the label is 0.5"),
    "a label that is an object": ("d.jsonl", line(text="x", label={"a": 1}), "the label is {'a': 1}"),
    "a label of half a character": (
        "d.jsonl",
        line(text="x", label="\ud83d"),
        "label holds half a character, U\\+D83D",
    ),
    "half a character": (
        "d.jsonl",
        line(text="a \ud83d b", label=1),
        "text holds half a character, U\\+D83D at place 3",
    ),
    "half a character in the context": ("d.jsonl", line(text="x", label=1, context="\udc00"), "the context holds half"),
    "half a character in the id": ("d.jsonl", line(text="x", label=1, id="\udc00"), "the id holds half a character"),
    "an id that is a list": ("d.jsonl", line(text="x", label=1, id=[1]), "the id is \\[1\\]"),
    "a text that is a number": ("d.jsonl", line(text=3, label=1), "the text is 3; it must be a string"),
    "a text that is a list": ("d.jsonl", line(text=["x"] * 99, label=1), r"the text is \['x'.*\.\.\.; it must be"),
    "a text of 4,000 digits": ("d.jsonl", GOOD + f'{{"text": {MANY}, "label": 1}}', "the text is 999"),
    "an empty text": ("d.jsonl", line(text=" ", label=1), "the text is empty"),
    "no text": ("d.jsonl", line(label=1), "there is no column 'text'"),
    "a context that is a number": ("d.jsonl", line(text="x", label=1, context=3), "the context is 3"),
    "a rationale of 4,000 digits": (
        "d.jsonl",
        GOOD + f'{{"text": "x", "label": 1, "rationale": [{MANY}]}}',
        "the rationale has the value 999",
    ),
    "a rationale far outside": ("d.jsonl", line(text="x", label=1, rationale=[[0, 10**30]]), "is not inside the text"),
    "a rationale nested deep": ("d.csv", f'text,label,rationale\nx,1,"{DEEP}"\n', "is no JSON list"),
    "a list of labels with 5,000 digits": ("d.csv", f'text,label\nx,"[{DIGITS}]"\n', "is no JSON list"),
    "a label of 5,000 digits in a table": ("d.csv", f"text,label\ngood,1\nbad,{DIGITS}\n", "is no index of a class"),
    "a label of minus 5,000 digits in a table": ("d.csv", f"text,label\ngood,1\nbad,-{DIGITS}\n", "is no index"),
    "labels 0, 1 and 8999": (
        "d.jsonl",
        line(text="x", label=8999),
        "go up to 8,999, but no text has class 2, nor any of 8,996 more below 8,999; number the classes without gaps",
    ),
    "a class that train lacks": (
        "d.csv",
        "text,label,split\na,0,train\nb,2,train\nc,0,test\n",
        "no text has class 1; .* as in labels=0\\+1\\+2",
    ),
    "a column of ids that is not there": ("d.csv:id=number", GOOD_TABLE, "no row has a column 'number'"),
    "a column of rationales that is not there": ("d.csv:rationale=why", GOOD_TABLE, "no row has a column 'why'"),
    "a split that is a number": ("d.jsonl", line(text="x", label=1, split=3), "the split is 3"),
    "a split of nothing": ("d.jsonl", line(text="x", label=1, split=""), "the split is ''"),
    "cut off": ("d.jsonl", GOOD[:-5], "this is not JSON"),
    "an array": ("d.jsonl", "[1, 2]", "this is not a JSON object"),
    "a number": ("d.jsonl", "3", "this is not a JSON object"),
    "nothing": ("d.jsonl", "", "holds no examples"),
    "white space": ("d.jsonl", "\n \n\t\n", "holds no examples"),
    "a byte order mark alone": ("d.jsonl", b"\xef\xbb\xbf", "holds no examples"),
    "null bytes": ("d.jsonl", b"\0\0\0", "this is not JSON"),
    "Latin-1": ("d.jsonl", '{"text": "café", "label": 1}'.encode("latin1"), "line 1: byte 0xe9 is not UTF-8"),
    "UTF-16": ("d.jsonl", GOOD.encode("utf-16"), "byte 0xff is not UTF-8"),
    "a name of a column twice": (
        "d.jsonl",
        '{"text": "a", "text": "b", "label": 1}',
        "the column 'text' is there twice",
    ),
    "a table of Latin-1": ("d.csv", "text,label\ncafé,1\n".encode("latin1"), "line 2: byte 0xe9 is not UTF-8"),
    "a table with a short row": ("d.csv", "text,label\na\n", "1 fields, but the header has 2"),
    "a table with an open quotation mark": ("d.csv", 'text,label\n"a,1\n', "check the quotation marks"),
    "a table with a column twice": ("d.csv", "text,text,label\na,b,1\n", "the column 'text' is there twice"),
    "a table of nothing": ("d.csv", "", "holds no examples"),
    "a header alone": ("d.csv", "text,label\n", "holds no examples"),
    "a table of null bytes": ("d.csv", b"text,label\n\0,1\n\0", "line"),
    "tabs and a short row": ("d.tsv", "text\tlabel\na\n", "1 fields"),
    "a half zip": ("d.jsonl.gz", gzip.compress(GOOD.encode())[:-9], "cannot be read"),
    "no zip": ("d.jsonl.gz", b"\x1f\x8b garbage", "cannot be read"),
    "a zip of Latin-1": ("d.csv.gz", gzip.compress("text,label\ncafé,1\n".encode("latin1")), "is not UTF-8"),
    "no Parquet": ("d.parquet", b"PAR1 not really PAR1", "cannot be read as Parquet"),
    "Parquet of nothing": ("d.parquet", b"", "cannot be read as Parquet"),
    "an unknown ending": ("d.xlsx", b"PK", "has no known format"),
}


@pytest.mark.parametrize("case", DATA)
def test_data(case: str, tmp_path: Path) -> None:
    name, content, sentence = DATA[case]
    place = tmp_path / name.partition(":")[0]
    place.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=sentence) as refused:
        load_data(str(tmp_path / name))
    assert len(str(refused.value)) < 1000
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("case", ["nested 100,000 deep", "Latin-1", "half a character", "no text", "a half zip"])
@pytest.mark.parametrize("verb", ["explain", "evaluate", "audit", "attack", "robustness"])
def test_data_is_looked_at_before_the_model_is(case: str, verb: str, tmp_path: Path, monkeypatch) -> None:
    name, content, _ = DATA[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")  # enough to be named, too little to be loaded
    monkeypatch.chdir(tmp_path)
    out = ["--out", "out"] if verb == "audit" else []
    assert name in refusal([verb, "model", "--data", name, *out])


def test_data_of_strange_parquet(tmp_path: Path) -> None:
    strange = {"text": [b"\xff\xfe"], "label": [0]}
    pyarrow.parquet.write_table(pyarrow.table(strange), tmp_path / "d.parquet")
    with pytest.raises(InputError, match="the text is b'"):
        load_data(str(tmp_path / "d.parquet"))
    twice = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["text", "text"])
    pyarrow.parquet.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="is there twice"):
        load_data(str(tmp_path / "t.parquet"))


TEXTS: dict[str, tuple[bytes, str]] = {
    "Latin-1": ("café".encode("latin1"), "byte 0xe9 is not UTF-8"),
    "UTF-16": ("good film".encode("utf-16"), "is not UTF-8"),
    "nothing": (b"", "holds no text"),
    "white space": (b"\n \n", "holds no text"),
    "half a character": (b"\xed\xa0\xbd", "is not UTF-8"),
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("source", ["a file", "the input"])
def test_texts(case: str, source: str, tmp_path: Path) -> None:
    content, sentence = TEXTS[case]
    place = tmp_path / "texts.txt"
    place.write_bytes(content)
    if source == "a file":
        assert sentence in refusal(["explain", "no-such-model", "--file", str(place)])
    else:
        said = refusal(["explain", "no-such-model", "--file", "-"], input=content)
        assert sentence.removeprefix("byte 0xe9 ") in said


TABLES: dict[str, tuple[str | bytes, str]] = {
    "nested deep": ("limit = " + DEEP, "is not valid TOML: it is nested too deeply"),
    "5,000 digits": (f"limit = {DIGITS}", "is not valid TOML: a number in it has too many digits"),
    "4,000 digits": (f"limit = {MANY}", "limit in .* is .*; it must be"),
    "cut off": ("limit = ", "is not valid TOML"),
    "Latin-1": ('out = "café"'.encode("latin1"), "is not valid TOML"),
    "half a character": ('out = "\\ud83d"', "is not valid TOML"),
    "an unknown key": ("limti = 3", "Did you mean 'limit'"),
    "a table for a value": ("[limit]\na = 1", "limit in .* is a table"),
    "a value for a table": ("train = 3", "train in .* is 3; it is a table"),
    "a list for a number": ("limit = [1, 2]", "limit in .* is \\[1, 2\\]; it must be a number"),
    "a date": ("limit = 1979-05-27", "it must be a number"),
    "a truth": ("limit = true", "it must be a number"),
    "infinity": ("limit = inf", "it must be"),
    "not a number": ("limit = nan", "it must be a number"),
    "a key twice": ("limit = 1\nlimit = 2", "is not valid TOML"),
    "null bytes": (b"\0", "is not valid TOML"),
    "an unknown setting": ("[train]\nepoch = 3", "train.epoch"),
    "a setting of 4,000 digits": (f"[train]\nepochs = {MANY}", "epochs"),
    "a setting nested": ("[train]\nepochs = [[1]]", "epochs"),
    "a seed below 0": ("seed = -1", "it must be from 0"),
}


@pytest.mark.parametrize("case", TABLES)
def test_settings(case: str, tmp_path: Path, monkeypatch) -> None:
    content, sentence = TABLES[case]
    place = tmp_path / "c.toml"
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    said = refusal(["train", "--data", "no-such-data", "--config", str(place)])
    assert pytest.approx(len(said), abs=1000) == 0
    with pytest.raises(InputError, match=sentence):
        raise InputError(said)


RECIPES: dict[str, str | bytes] = {
    "nested deep": "item = " + DEEP,
    "5,000 digits": f"item = {DIGITS}",
    "a number": "item = 3",
    "a list of numbers": "item = [1]",
    "a name that is a number": '[[item]]\nwhat = 3\nstatus = "run"',
    "a command that is a number": '[[item]]\nwhat = "a"\nstatus = "run"\ncommand = 3',
    "a status that is a list": '[[item]]\nwhat = "a"\nstatus = []\ncommand = "veridical list"',
    "an open quotation mark": '[[item]]\nwhat = "a"\nstatus = "run"\ncommand = "veridical list \'x"',
    "no verb": '[[item]]\nwhat = "a"\nstatus = "run"\ncommand = "veridical "',
    "no status": '[[item]]\nwhat = "a"',
    "nothing": "",
    "Latin-1": 'x = "café"'.encode("latin1"),
    "a folder": "folder",
}


@pytest.mark.parametrize("case", RECIPES)
def test_recipes(case: str, tmp_path: Path, monkeypatch) -> None:
    content = RECIPES[case]
    place = tmp_path / "r.toml"
    if content == "folder":
        place.mkdir()
    else:
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    assert "r.toml" in refusal(["run", str(place), "--dry-run"])


ROW = {"text": "a good film", "method": "mine", "scores": [1, 2, 3]}
EXPLANATIONS: dict[str, tuple[str | bytes, str]] = {
    "nested deep": (DEEP, "nested too deeply"),
    "5,000 digits": ('{"scores": [' + DIGITS + "]}", "too many digits"),
    "a score of 4,000 digits": ('{"text": "x", "method": "m", "scores": [' + MANY + "]}", "which is too large"),
    "a cost of 4,000 digits": (json.dumps(ROW)[:-1] + ', "seconds": ' + MANY + "}", "which is too large"),
    "a probability of 4,000 digits": (
        json.dumps(ROW)[:-1] + ', "probabilities": [' + MANY + "]}",
        "which is too large",
    ),
    "half a character": (json.dumps({**ROW, "text": "\ud83d"}), "text holds half a character"),
    "half a character in the id": (json.dumps({**ROW, "id": "\ud83d"}), "id holds half a character"),
    "half a character in the method": (json.dumps({**ROW, "method": "\ud83d"}), "method holds half a character"),
    "half a character in the context": (json.dumps({**ROW, "context": "\ud83d"}), "context holds half a character"),
    "an id that is a list": (json.dumps({**ROW, "id": [1]}), "id is \\[1\\]"),
    "Latin-1": ("café".encode("latin1"), "byte 0xe9 is not UTF-8"),
    "no finite score": (json.dumps({**ROW, "scores": [1, 2, float("nan")]}), "score 3 is nan"),
    "an infinite score": (json.dumps({**ROW, "scores": [1, 2, float("inf")]}), "score 3 is inf"),
    "scores that are texts": (json.dumps({**ROW, "scores": ["1"]}), "scores holds '1'"),
    "scores that are lists": (json.dumps({**ROW, "scores": [[1]]}), "scores holds \\[1\\]"),
    "no scores": (json.dumps({"text": "x", "method": "m"}), "there are no scores"),
    "no method": (json.dumps({"text": "x", "scores": [1]}), "there is no method"),
    "options that are no JSON": (json.dumps({**ROW, "options": DEEP}), "it must be a JSON object"),
    "options of 5,000 digits": (json.dumps({**ROW, "options": DIGITS}), "it must be a JSON object"),
    "starts alone": (json.dumps({**ROW, "starts": [0, 1, 2]}), "give starts and ends"),
    "a label that is a text": (json.dumps({**ROW, "label": "x"}), "label is 'x'"),
    "a list": ("[1]", "this is not an object"),
    "null bytes": (b"\0", "this is not JSON"),
    "nothing": ("", "holds no explanations"),
    "white space": ("\n \n", "holds no explanations"),
    "scores that are there twice": (json.dumps(ROW)[:-1] + ', "scores": [3, 2, 1]}', "scores is there twice"),
    "scores past single precision": (json.dumps({**ROW, "scores": [1e39, 0, 0]}), "single precision does not hold"),
    "scores whose sum is past it": (json.dumps({**ROW, "scores": [9e36, 9e36, 0]}), "single precision does not hold"),
    "scores below single precision": (json.dumps({**ROW, "scores": [1e-60, 0, 0]}), "single precision does not hold"),
    "no score at all": (json.dumps({**ROW, "scores": []}), "nothing of the text is explained"),
    "nothing explained": (json.dumps({**ROW, "free": [False] * 3}), "nothing of the text is explained"),
    "fewer tokens than scores": (json.dumps({**ROW, "tokens": ["a"]}), "3 scores but 1 tokens"),
    "a method of a space": (json.dumps({**ROW, "method": " "}), "there is no method"),
    "a method of two lines": (json.dumps({**ROW, "method": "a\nb"}), "keep it to one line"),
    "a method that clears the screen": (json.dumps({**ROW, "method": "\x1b[2J"}), "keep it to one line"),
    "a probability below 0": (json.dumps({**ROW, "probabilities": [-1, 2]}), "probabilities holds -1"),
    "a probability above 1": (json.dumps({**ROW, "probabilities": [3, 2]}), "probabilities holds 3"),
    "a probability that is no number": (json.dumps({**ROW, "probabilities": [float("nan")]}), "holds nan"),
    "a time that is no number": (json.dumps({**ROW, "seconds": float("nan")}), "seconds is nan; it must be 0 or more"),
    "a time below 0": (json.dumps({**ROW, "seconds": -5}), "seconds is -5"),
    "passes without end": (json.dumps({**ROW, "forward": float("inf")}), "forward is inf"),
    "an error that is no number": (json.dumps({**ROW, "sampling_error": float("nan")}), "sampling_error is nan"),
    "an error of 4,000 digits": (json.dumps(ROW)[:-1] + ', "sampling_error": ' + MANY + "}", "which is too large"),
    "a label that is a truth": (json.dumps({**ROW, "label": True}), "label is True"),
}


@pytest.mark.parametrize("case", EXPLANATIONS)
def test_explanations_made_elsewhere(case: str, tmp_path: Path) -> None:
    content, sentence = EXPLANATIONS[case]
    place = tmp_path / "e.jsonl"
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=sentence) as refused:
        read_explanations(place)
    assert len(str(refused.value)) < 1000


PARQUET: dict[str, tuple[pyarrow.Table, str]] = {
    "a column twice": (
        pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 2, names=["method", "method"]),
        "method is there twice",
    ),
    "no rows": (pyarrow.table({"text": pyarrow.array([], pyarrow.string())}), "holds no explanations"),
    "a gap in the scores": (
        pyarrow.table({"text": ["a b"], "method": ["m"], "scores": [[1.0, None]]}),
        "scores holds None",
    ),
    "scores as text": (pyarrow.table({"text": ["a"], "method": ["m"], "scores": ["[1]"]}), r"scores is '\[1\]'"),
    "no scores": (pyarrow.table({"text": ["a"], "method": ["m"], "scores": pyarrow.nulls(1)}), "there are no scores"),
}


@pytest.mark.parametrize("case", PARQUET)
def test_explanations_in_parquet(case: str, tmp_path: Path) -> None:
    held, sentence = PARQUET[case]
    pyarrow.parquet.write_table(held, tmp_path / "e.parquet")
    with pytest.raises(InputError, match=sentence):
        read_explanations(tmp_path / "e.parquet")


def test_explanations_beside_what_nobody_asked_for(tmp_path: Path) -> None:
    when = pyarrow.array([2**61], pyarrow.timestamp("us"))  # a date that Python lacks
    held = pyarrow.table({"text": ["a b"], "method": ["m"], "scores": [[1.0, 2.0]], "when": when})
    pyarrow.parquet.write_table(held, tmp_path / "e.parquet")
    (reading,) = read_explanations(tmp_path / "e.parquet")
    assert reading.scores.tolist() == [1, 2]


def test_a_file_of_others_is_not_to_be_deleted(tmp_path: Path) -> None:
    (tmp_path / "e.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(InputError, match="check that it is whole, or, if Veridical wrote it, delete it"):
        read_explanations(tmp_path / "e.parquet")


OTHERS: dict[str, tuple[dict[str, object], str]] = {
    "a class of another order": (
        {"target": 0, "target_name": "b"},
        "target is 0 and target_name 'b', which is class 1",
    ),
    "another context": ({"context": "why"}, "the context of id '1' is not the one in the data"),
    "another text": ({"text": "a bad film"}, "the text of id '1' is not the one in the data"),
    "a class that there is not": ({"target": 9}, "target 9 is not a class"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_explanations_of_something_else(case: str, tmp_path: Path) -> None:
    cells, sentence = OTHERS[case]
    (tmp_path / "e.jsonl").write_text(json.dumps({"id": "1", **ROW, **cells}))
    model, tokenizer = tiny("bert", num_labels=2)
    model.config.id2label = {0: "a", 1: "b"}
    with pytest.raises(InputError, match=sentence):
        to_attributions(load(model, tokenizer), read_explanations(tmp_path / "e.jsonl"), [Example("1", "a good film")])


@pytest.mark.parametrize(
    "content", [DEEP, f"[{DIGITS}]", "{", "", "\udcff"], ids=["deep", "digits", "cut", "none", "half"]
)
@pytest.mark.parametrize("verb", ["report", "compare"])
def test_summaries_of_audits(content: str, verb: str, tmp_path: Path) -> None:
    for name in ("summary.json", "examples.json"):
        (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    (tmp_path / "scores.parquet").write_bytes(b"")
    assert "summary.json cannot be read as JSON" in refusal([verb, str(tmp_path)])


@pytest.mark.parametrize(
    "content", ["[]", "3", "null", '"x"', "{}", '{"schema": 10}', '{"schema": "x"}', '{"schema": []}']
)
@pytest.mark.parametrize("verb", ["report", "compare"])
def test_summaries_of_something_else(content: str, verb: str, tmp_path: Path) -> None:
    for name in ("summary.json", "examples.json"):
        (tmp_path / name).write_text(content)
    (tmp_path / "scores.parquet").write_bytes(b"")
    assert "summary.json" in refusal([verb, str(tmp_path)])


def test_a_journal_ends_at_what_is_no_line(tmp_path: Path) -> None:
    for torn in (DEEP, f"[{DIGITS}]", "{", "\xff"):
        (tmp_path / "j.jsonl").write_text(f'{{"a": 1}}\n{torn}\n{{"a": 2}}\n', encoding="latin1")
        assert store.read_jsonl(tmp_path / "j.jsonl") == [{"a": 1}]
