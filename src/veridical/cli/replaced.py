"""Files of the user's own in the place of a recipe's datasets: `veridical run RECIPE --data sst2=my/sst2`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from veridical.cli.recipe import Command, Line
from veridical.core.errors import Caution, InputError
from veridical.core.readable import shown
from veridical.core.spec import Spec, listed, read_place

NAMING = ("--data", "--ood")  # options of every verb that name datasets


def with_data(lines: Sequence[Line], given: Iterable[str]) -> list[Line]:
    """The lines with every dataset of a name, whatever its options, read from files instead. The files keep the
    dataset's name, by which a benchmark knows what score a paper takes."""
    files = dict(map(_files, given))
    named = {name for line in lines for command in line.commands for name in _datasets(command)}
    for name in files:
        if name not in named:
            raise InputError(
                f"--data {name}=...: the recipe reads no dataset {name!r}; it reads: {', '.join(sorted(named))}."
            )
    _insist_on_classes(files)
    _say_what_is_lost(lines, files)
    return [replace(line, commands=tuple(_reading(command, files) for command in line.commands)) for line in lines]


def _insist_on_classes(files: Mapping[str, str]) -> None:
    """Files of other classes are another task: the five grades of a treebank are not its two sentiments."""
    from veridical.data import datasets, load_data

    for name, spec in files.items():
        classes = datasets[name].labels if name in datasets else ()
        if not classes:
            continue
        labels = load_data(spec).labels
        if len(labels) != len(classes):
            raise InputError(
                f"--data {name}=...: the files have {len(labels)} classes ({', '.join(labels)}), but {name} has "
                f"{len(classes)} ({', '.join(classes)}); give files of these classes, or run the commands by hand."
            )


def _say_what_is_lost(lines: Sequence[Line], files: Mapping[str, str]) -> None:
    """Files are read as they lie there: a dataset's own options (which sentences it leaves out) are not applied."""
    specs = [spec for line in lines for command in line.commands for spec in _specs(command) if _name(spec) in files]
    for spec in dict.fromkeys(specs):
        known = {"path", *Spec.read(files[_name(spec)]).options}
        lost = [f"{key}={value}" for key, value in Spec.read(spec).options.items() if key not in known]
        if lost:
            warnings.warn(
                f"The recipe reads {shown(spec)}; the files in its place are read as they are, without "
                f"{', '.join(lost)}. If that changes the texts, change the files.",
                Caution,
                stacklevel=3,
            )


def _files(text: str) -> tuple[str, str]:
    """A name and the spec of the files that are read in its place, wherever the commands run."""
    from veridical.data import resolve

    name, _, typed = text.partition("=")
    if not name or not typed:
        raise InputError(f"--data {shown(text)} cannot be read; write NAME=FOLDER, as in sst2=my/sst2.")
    place = read_place(typed)
    path = os.path.abspath(place.name)
    if not os.path.exists(path):
        raise InputError(f"--data {shown(text)}: there is no file or folder {shown(place.name)}; check the path.")
    if "," in path:
        raise InputError(f"--data {shown(text)}: a comma in a path would part it in --ood; move or link the files.")
    spec = Spec(path, {"name": name, **place.options}).write()
    resolve(spec)  # an option that files do not have is refused here
    return name, spec


def _datasets(command: Command) -> list[str]:
    return [_name(spec) for spec in _specs(command)]


def _specs(command: Command) -> list[str]:
    return [spec for place in _places(command.words) for spec in listed(command.words[place])]


def _places(words: Sequence[str]) -> list[int]:
    """Where the words name datasets."""
    return [place + 1 for place, word in enumerate(words[:-1]) if word in NAMING]


def _name(spec: str) -> str:
    return Spec.read(spec).head[0]


def _reading(command: Command, files: Mapping[str, str]) -> Command:
    words = list(command.words)
    for place in _places(words):
        specs = listed(words[place])
        if any(_name(spec) in files for spec in specs):  # else the words stay as they were typed
            words[place] = ",".join(files.get(_name(spec), spec) for spec in specs)
    return replace(command, words=tuple(words))
