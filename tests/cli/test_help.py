"""Help of every verb, and config files: both are read from the options' records."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import veridical
from veridical.audits.options import AuditOptions
from veridical.cli.app import VERBS, app, verb
from veridical.cli.verb import to_markdown
from veridical.core.errors import InputError
from veridical.retraining.options import RoarOptions

DOCS = Path(__file__).parents[2] / "docs"
METAVAR = re.compile(r"[A-Z]+(=[A-Z]+)?(\.\.\.)?|I/N")  # nouns in capitals


def shown(*words: str) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="veridical", env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("words", [(), ("data",), *(tuple(name.split()) for name in VERBS)], ids=" ".join)
def test_help_fits_eighty_columns_and_shows_no_types(words):
    text = shown(*words)
    assert max(map(len, text.splitlines())) <= 80
    assert "<" not in text
    assert "..." not in re.sub(r"\bARGS\]\.\.\.|[A-Z]\.\.\.|loss, \.\.\.|1, \.\.\.", "", text)  # nothing is cut short


@pytest.mark.parametrize("name", VERBS)
def test_every_option_has_a_sentence_and_a_noun_for_its_value(name):
    text = " ".join(shown(*name.split()).split())
    for option in verb(name).typed:
        assert option.help.sentence.endswith("."), option.name
        assert option.help.sentence in text
        assert bool(option.metavar) != option.is_flag, option.name
        assert option.is_flag or METAVAR.fullmatch(option.metavar), option.name
        if not option.required and isinstance(option.default, (int, float)) and not option.is_flag:
            assert f"[default: {option.usual}" in text


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_an_example_that_can_be_typed(name):
    copied = re.search(r"Example:\n((?:.*\\\n)*.*)", shown(*name.split()))
    assert copied, "no example"
    words = shlex.split(copied[1].replace("\\\n", " "))
    assert words in [shlex.split(example) for example in verb(name).examples]
    for example in verb(name).examples:
        program, *typed = shlex.split(example)
        assert program == "veridical"
        assert typed[: len(name.split())] == name.split()
        verb(name).parse(typed[len(name.split()) :])


def test_the_documents_have_every_option():
    written = to_markdown([verb(name) for name in VERBS])
    stale = "run `python -m veridical.cli.app > docs/options.md`"
    assert (DOCS / "options.md").read_text(encoding="utf-8") == written, stale


# -- config files -------------------------------------------------------------------------------------------


def parsed(tmp_path: Path, name: str, text: str, *words: str) -> object:
    path = tmp_path / "options.toml"
    path.write_text(text)
    return verb(name).parse([*words, "--config", str(path)])["options"]


def test_a_file_holds_options_as_they_are_typed_or_as_python_calls_them(tmp_path):
    text = 'data = "planted"\nout = "x"\nmethod = "attention,lime"\nlimit = 9\ncontrols = ["gaussian"]\n'
    options = parsed(tmp_path, "audit", text, "MODEL", "--limit", "5")
    assert options == AuditOptions(
        "MODEL", "planted", out="x", methods=("attention", "lime"), limit=5, controls=("gaussian",)
    )


def test_settings_of_a_training_are_a_table(tmp_path):
    text = 'data = "planted"\nout = "x"\nseeds = [3, 4]\n[train]\nepochs = 2\nlr = 0.1\n'
    options = parsed(tmp_path, "roar", text, "--set", "train.epochs=7")
    assert options == RoarOptions("planted", out="x", seeds=(3, 4), config={"epochs": "7", "lr": 0.1})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("limt = 3", r"no setting 'limt'\. Did you mean 'limit'\?"),
        ("limit = 0", r"limit in .*options\.toml is 0; it must be at least 1"),
        ('by = "magic"', r"by in .* is 'magic'; allowed: delete, mask"),
        ("[limit]\nx = 1", "limit in .* is a table"),
        ("progress = true", "no setting 'progress'"),  # Python's alone
        ("seed = 1", "veridical audit needs --data DATA"),
    ],
)
def test_mistakes_in_a_file(tmp_path, text, sentence):
    with pytest.raises(InputError, match=sentence):
        parsed(tmp_path, "audit", text, "MODEL")


# -- the same options in Python -----------------------------------------------------------------------------


def test_a_function_shows_its_options():
    parameters = inspect.signature(veridical.audit).parameters
    assert list(parameters)[:3] == ["model", "data", "out"]
    assert parameters["data"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert parameters["seed"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["seed"].default == 0
    assert parameters["seed"].annotation is int
    assert list(inspect.signature(veridical.evaluate).parameters)[:4] == ["clf", "examples", "methods", "metrics"]
    assert "seed: Seed of the sample" in str(veridical.audit.__doc__)


def test_python_calls_options_by_their_names_there():
    with pytest.raises(TypeError, match=r"audit\(\) got an unexpected .*'limt'\. Did you mean 'limit'\?"):
        veridical.audit("m", "planted", out="x", limt=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"audit\(\) missing a required.* 'out'"):
        veridical.audit("m", "planted")  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"^limit is 0; it must be at least 1\.$"):
        veridical.audit("m", "planted", out="x", limit=0)
    with pytest.raises(InputError, match=r"^controls is 'noise'; allowed: orders, permutation, gaussian"):
        veridical.audit("m", "planted", out="x", controls=["noise"])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"no setting 'train\.rate'"):
        veridical.train("planted", config={"rate": 1})


@pytest.mark.parametrize("name", ["audit", "evaluate", "train", "shortcuts", "serve", "roar", "load_data"])
def test_what_help_shows_are_plain_types(name):
    function = getattr(veridical, name)
    shown = str(inspect.signature(function))
    assert not re.search("Annotated|Range|Help|Checked|function", shown)
    assert set(inspect.signature(function).parameters) <= set(function.__annotations__)
    assert not re.search("Annotated|Range|Help", str(function.__annotations__))


def test_a_method_is_named_by_method_where_it_may_be_a_list():
    with pytest.raises(
        InputError, match=r"^The attribution method 'lime' has no option 'sample'\. Did you mean 'samples'"
    ):
        veridical.attribution.methods.choose("lime:sample=3")
    with pytest.raises(TypeError, match="Did you mean 'methods'"):
        veridical.evaluate("m", ["a text"], method="lime")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('modle = "x"', "Did you mean 'model'"),
        ("epochs = 3", r"There is no setting 'epochs' outside of a table; write it under \[train\]\."),
        ("[train]\nlearning_rate = 1", r"Did you mean 'train\.lr'"),
        ("[train]\nbatch_size = 8", r"Did you mean 'train\.batch'"),
    ],
)
def test_hints_lead_to_what_was_meant(tmp_path, text, sentence):
    with pytest.raises(InputError, match=sentence):
        parsed(tmp_path, "train", text, "--data", "planted")
