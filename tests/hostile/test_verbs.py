"""Odd values for every option of every verb: each ends in one sentence, and before anything is loaded.

The words of a verb name a model, data or a folder that is not there, so that a value that is allowed ends in a refusal
too. A few values of each option are tried in `make test`, all of them under the marker `hostile`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostile.refusals import refusal
from veridical.cli.app import VERBS, verb
from veridical.core.options import Option

NO = "no-such-thing"
# What a verb needs besides the option that is tried.
BASE: dict[str, dict[str, str]] = {
    "demo": {"--data": NO},
    "train": {"--data": NO},
    "explain": {"MODEL": NO, "--text": "good"},
    "prompt": {"MODEL": NO, "--prompt": "{text}:", "--labels": "a= b", "--out": "out"},
    "data show": {"DATA": NO},
    "data fetch": {"NAME...": NO},
    "evaluate": {"MODEL": NO, "--data": "planted:size=40"},
    "audit": {"MODEL": NO, "--data": "planted:size=40", "--out": "out"},
    "compare": {"DIR...": NO},
    "shortcuts": {"AUDIT": NO},
    "card": {"RUN": NO},
    "report": {"DIR": NO},
    "roar": {"--data": NO, "--out": "out"},
    "fresh": {"--data": NO, "--out": "out"},
    "guidance": {"--base": NO, "--guided": f"a={NO}", "--data": "planted:size=40", "--out": "out"},
    "robustness": {"MODEL...": NO, "--data": "planted:size=40"},
    "attack": {"MODEL...": NO, "--data": "planted:size=40"},
    "pos": {"NAME=MODEL...": NO, "--data": "planted:size=40"},
    "run": {"RECIPE": NO},
    "serve": {"MODEL...": NO},
    "status": {"DIR": NO},
    "validate": {"--method": "no-such-method", "--out": "out"},
}
VALUES = {
    "nothing": "",
    "a space": " ",
    "a name too long": "x" * 300,
    "a path too long": "a/" * 3000,
    "half a character": "\udcff",
    "half a character of JSON": "\ud83d",
    "5,000 digits": "9" * 5000,
    "minus 5,000 digits": "-" + "9" * 5000,
    "below 0": "-1",
    "not a number": "nan",
    "infinite": "inf",
    "too large for a float": "1e999",
    "hexadecimal": "0x10",
    "a null byte": "a\0b",
    "brackets": "[" * 100_000,
    "colons": ":::",
    "equals": "==",
    "a spec of nothing": ":a=b",
    "an option without a value": "attention:layer=",
    "commas": ",,,",
    "pluses": "+++",
    "the root": "/",
    "far above": "../" * 40,
    "a home of nobody": "~nobody-here/x",
    "a device": "/dev/null",
    "two lines": "a\nb",
    "escape codes": "\x1b[2J",
    "from right to left": "\u202egnihton",
    "formats": "%s{0}{x!r}",
    "an emoji": "💥",
    "a script": "<script>alert(1)</script>",
}
THERE = {"the root", "far above"}  # folders that there are: `status` would look through the whole disk
SHORT = 3  # values of each option in the everyday suite


def spelt(name: str, option: Option) -> list[str]:
    """The words for one option; what has a place in the command goes after `--`."""
    return ["--", name] if option.help.argument else [option.spelling, name]


def options() -> Iterator[tuple[str, Option]]:
    for name in VERBS:
        for option in verb(name).typed:
            if not option.is_flag and name in BASE:
                yield name, option


def cases() -> Iterator[object]:
    """Every option with every value. The everyday suite takes a few of each, other ones for the next option."""
    for place, (name, option) in enumerate(options()):
        for number, what in enumerate(VALUES):
            if f"{name} {option.spelling}" == "status DIR" and what in THERE:
                continue
            often = (number - SHORT * place) % len(VALUES) < SHORT
            marks = [] if often else [pytest.mark.hostile]
            yield pytest.param(name, option, what, id=f"{name} {option.spelling} {what}", marks=marks)


@pytest.mark.parametrize(("name", "option", "what"), list(cases()))
def test_an_odd_value_ends_in_a_sentence(
    name: str, option: Option, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    others = {key: value for key, value in BASE[name].items() if key != option.spelling}
    named = [word for key, value in others.items() if key.startswith("--") for word in (key, value)]
    placed = [value for key, value in others.items() if not key.startswith("--")]
    tried = spelt(VALUES[what], option)
    words = [*tried, *placed] if not option.help.argument else [*placed, *tried]
    assert refusal([*name.split(), *named, *words])
    assert not list(tmp_path.rglob("*"))  # nothing was begun


def test_the_test_sees_the_options() -> None:
    seen = {f"{name} {option.spelling}" for name, option in options()}
    assert {"explain --text", "train --set", "roar --shard", "audit MODEL", "run --only", "demo --out"} <= seen
    without = {name for name in VERBS if name not in BASE}
    assert without == {"list", "data list", "doctor"}  # which take no value but a word of four


@pytest.mark.parametrize("what", VALUES)
def test_a_kind_of_list_that_there_is_not(what: str) -> None:
    assert refusal(["list", "--", VALUES[what]])


@pytest.mark.parametrize("what", VALUES)
@pytest.mark.parametrize("words", [[], ["data"]], ids=["a verb", "a verb of data"])
def test_a_verb_that_there_is_not(words: list[str], what: str) -> None:
    assert refusal([*words, "--", VALUES[what]])
