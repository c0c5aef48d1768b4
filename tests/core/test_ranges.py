from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from veridical.core.errors import InputError
from veridical.core.ranges import above, at_least, between, insist, ranges
from veridical.core.registry import resolve
from veridical.core.values import read

Steps = Annotated[int, "how many", at_least(1)]


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        ("0", Steps, "steps is 0; it must be at least 1."),
        ("x", Steps, "steps is 'x'; it must be a number."),
        (0, Steps | None, "steps is 0; it must be at least 1."),
        ("0", Annotated[float, above(0)], "steps is 0; it must be above 0."),
        ("inf", Annotated[float, at_least(0)], "steps is inf; it must be at least 0, and finite."),
        ("1.5", Annotated[float, between(0, 1)], "steps is 1.5; it must be from 0 to 1."),
        ("0", Annotated[float, between(0, 1, without="low")], "steps is 0; it must be above 0 and at most 1."),
        ("1", Annotated[float, between(0, 1, without="high")], "steps is 1; it must be at least 0 and below 1."),
        ("0.5+2", tuple[Annotated[float, between(0, 1)], ...], "steps is 2; it must be from 0 to 1."),
        ("0.5+2", Annotated[tuple[float, ...], between(0, 1)], "steps is 2; it must be from 0 to 1."),
    ],
)
def test_what_is_out_of_range_is_refused_with_what_is_allowed(value, annotation, message):
    with pytest.raises(InputError) as refusal:
        read(value, annotation, "steps")
    assert str(refusal.value) == message


def test_what_is_in_range_is_read_as_its_type():
    assert read("1", Steps, "steps") == 1
    assert read("none", Annotated[int | None, at_least(1)], "steps") is None
    assert read("0+1", tuple[Annotated[float, between(0, 1)], ...], "steps") == (0.0, 1.0)


def test_an_option_may_have_a_range():
    def sample(*, steps: Steps = 50) -> None: ...

    assert resolve(sample, {"steps": "2"}, "it") == {"steps": 2}
    with pytest.raises(InputError, match=r"option 'steps' of it is 0; it must be at least 1."):
        resolve(sample, {"steps": "0"}, "it")


def test_a_record_insists_on_its_ranges():
    @dataclass(frozen=True)
    class Settings:
        name: str = "x"
        epochs: Annotated[int, at_least(1)] | None = None

        def __post_init__(self) -> None:
            insist(self)

    assert Settings(epochs=1).epochs == 1
    assert Settings().epochs is None
    with pytest.raises(InputError, match=r"epochs is 0; it must be at least 1."):
        Settings(epochs=0)


def test_help_finds_the_words_for_a_range():
    assert [allowed.phrase for allowed in ranges(Steps | None)] == ["at least 1"]
    assert [allowed.phrase for allowed in ranges(tuple[Annotated[float, between(0, 1)], ...])] == ["from 0 to 1"]
    assert ranges(int) == []
