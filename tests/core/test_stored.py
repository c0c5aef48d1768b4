"""Records to files and back: equal, checked, of any schema that has a way to today's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veridical.core import stored
from veridical.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Inner:
    name: str
    values: tuple[float, ...]
    state: Literal["open", "done"]


@dataclass(frozen=True, slots=True)
class Outer:
    SCHEMA: ClassVar[int] = 2

    title: str
    inner: tuple[Inner, ...]
    by_name: Mapping[str, Inner]
    share: float | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)


inner = st.builds(Inner, st.text(), st.lists(st.floats(allow_nan=False, allow_infinity=False)).map(tuple))
outer = st.builds(
    Outer, st.text(), st.lists(inner).map(tuple), st.dictionaries(st.text(), inner), st.none() | st.floats(-1, 1)
)


@given(outer)
def test_what_is_written_is_read(tmp_path_factory, record):
    path = tmp_path_factory.mktemp("stored") / "record.json"
    stored.write(path, record)
    assert stored.read(path, Outer) == record
    assert json.loads(path.read_text(encoding="utf-8"))["schema"] == 2


def plain(**changed: Any) -> dict[str, Any]:
    return {"schema": 2, "title": "t", "inner": [], "by_name": {}, **changed}


def test_an_older_schema_is_brought_up_to_date():
    older = {1: lambda fields: {**{k: v for k, v in fields.items() if k != "name"}, "title": fields["name"]}}
    old = {"name": "t", "inner": [], "by_name": {}}
    assert stored.from_plain(old, Outer, where="x.json", older=older) == Outer("t", (), {})


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([1], "x.json holds no Outer, but list"),
        (plain(schema=3), "has schema 3, and this version of Veridical knows 2; update"),
        (plain(schema="2"), "has schema '2'"),
        ({"name": "t"}, "has schema 1, which this version of Veridical no longer reads; run the command"),
        (plain(title=3), r"not what Veridical wrote \(Expected `str`, got `int` - at `\$.title`\)"),
        (plain(inner=[{"name": "a", "values": [1], "state": "shut"}]), r"Invalid enum value 'shut'"),
        ({"schema": 2, "title": "t", "inner": []}, "missing required field `by_name`"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(value, sentence):
    with pytest.raises(InputError, match=sentence):
        stored.from_plain(value, Outer, where="x.json")
