"""The one grammar of names, options and lists: what a user types to choose something is read and written here.

    name:option=value:option=value    a spec: `integrated_gradients:steps=50:rule=right`
    spec,spec                         several of them; an option of the command line given again means the same
    option=value+value                a list inside an option; `values.read` reads it by the option's type
    option=name/option=value          a spec inside an option, where `:` is taken: `explanation:method=alti/layer=3`
    0,2,5-9                           seeds
    key=value                         a pair: `explanation=0.035+0.031:lr=0.05`, `train.lr=3e-5`

A `:` (or `/`) separates only where `option=` follows it, so that names and values may hold it as well:
`hub:owner/name:config@revision`, `folder/a:b.csv:text=review`, `lexicon/file=my/words.tsv`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from veridical.core.errors import InputError
from veridical.core.place import at_home
from veridical.core.readable import shown

Mark = Literal[":", "/"]
MOST_SEEDS = 1000  # in one range: more is a slip of the finger
INSIDE: Mark = "/"  # separates the options of a spec that is itself the value of an option

_BEFORE_OPTION = {mark: re.compile(rf"\s*{mark}[\s{mark}]*(?=[\w.-]+\s*=)") for mark in (":", "/")}
_AT_END = {mark: re.compile(rf"[\s{mark}]+\Z") for mark in (":", "/")}


@dataclass(frozen=True)
class Spec:
    """A name with options, their values as they were typed. Every spec can be written, and reads back as itself."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if _parts(self.write(), ":") != (self.name, self.options):
            raise InputError(
                f"{self.write()!r} would be read as something else; choose a name and values without `:option=` in "
                "them, and without spaces or colons at an end."
            )

    @property
    def head(self) -> tuple[str, str]:
        """The name up to its first colon, and what follows it: `hub` and `owner/name:config`, `random` and nothing."""
        first, _, trailing = self.name.partition(":")
        return first, trailing

    @classmethod
    def read(cls, text: str, mark: Mark = ":") -> Spec:
        """The spec that a text says. Of an option that is said twice the last one counts."""
        return cls(*_parts(text, mark))

    def write(self, mark: Mark = ":") -> str:
        return mark.join([self.name, *(f"{key}={value}" for key, value in self.options.items())])


def _parts(text: str, mark: Mark) -> tuple[str, dict[str, str]]:
    name, *options = _BEFORE_OPTION[mark].split(_AT_END[mark].sub("", text))
    pairs = (option.partition("=") for option in options)
    return name.strip(), {key.strip(): value.strip() for key, _, value in pairs}


def read_place(text: str) -> Spec:
    """A spec whose name is a name, a hub id or a path, like a model's: a path that exists may hold colons."""
    text = at_home(text)
    if os.path.exists(text):
        return Spec(text)
    spec = Spec.read(text)
    trailing = spec.head[1]
    if trailing and not os.path.exists(spec.name):
        raise InputError(f"{trailing!r} in the model {text!r} is not option=value; write it as name:layers=3.")
    return spec


def base_name(text: str) -> str:
    """The name in a spec, without its options."""
    return Spec.read(text).name


def listed(given: str | Iterable[str] | None) -> list[str]:
    """The specs in a text with commas, or in several such texts; what is empty is left out. The name of a file or
    folder that is there is one of them, whatever commas it holds."""
    texts = [given] if isinstance(given, str) else given or ()
    parts = ([text] if _is_there(text) else text.split(",") for text in texts)
    return [item.strip() for several in parts for item in several if item.strip()]


def _is_there(text: str) -> bool:
    """Whether the commas are those of a name: behind the options of a folder that is there they part a list."""
    return any("," in name and os.path.exists(name) for name in (text, _parts(text, ":")[0]))


def seeds_in(typed: Iterable[str], who: str = "The seed") -> tuple[int, ...]:
    """Seeds as people name them: `3`, `0,1,2`, `0-4`; each once, in the order in which they are named."""
    seeds: list[int] = []
    for part in listed(text.replace("+", ",") for text in typed):
        ends = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if not first <= last < first + MOST_SEEDS:
            raise InputError(
                f"{who} is {shown(part)}, which is not a seed or a range of at most {MOST_SEEDS:,} seeds; write 3, "
                "0,1,2 or 0-4."
            )
        seeds += range(first, last + 1)
    if not seeds:
        raise InputError(f"{who} names no seed; write 3, 0,1,2 or 0-4.")
    return tuple(dict.fromkeys(seeds))


def pair(text: str, what: str, form: str, example: str) -> tuple[str, str]:
    """`key=value`; the error says `what` the text should have been, in which `form`, with an `example`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"{what} {text!r} is not {form}; write it like {example}.")
    return key.strip(), value.strip()


def slug(name: str) -> str:
    """A spec as one folder name: the last step of a path that exists, `-` for what a path cannot hold."""
    name = Path(name).resolve().name if os.path.exists(name) else name
    return re.sub(r"[^A-Za-z0-9._=+]+", "-", name).strip("-.")[:80] or "unnamed"
