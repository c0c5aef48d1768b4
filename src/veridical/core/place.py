"""What may be written where: nothing that Veridical did not make is ever removed.

A file takes the place of a file only, and a folder that of a folder only, if that one is ours (`check_swap`). A link
to a file gives way to the new file, and the file that it led to stays as it is; a link to a folder may stand for the
folder that a run is written into. Every other link is refused, and so are devices.

An option that names a place carries a note, `A_FILE`, `A_FOLDER` or `A_RUN`: its value is checked before any work
begins, so that a long run does not end in a refusal.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from veridical.core.errors import InputError
from veridical.core.readable import shown_path
from veridical.core.wording import option

SPEC, STAMP = "spec.json", "stamp.json"  # what makes a folder a run's, and where it comes from
Kind = Literal["a file", "a folder"]
T = TypeVar("T", str, Path, str | Path)


@dataclass(frozen=True)
class Written:
    """A note on an option: its value is a place to which this kind of thing will be written."""

    kind: Kind
    claimed: bool = False  # a folder that must be new, empty or a run's

    def check(self, path: str | Path | None) -> None:
        if path is None:
            return
        (check_file if self.kind == "a file" else check_folder)(path)
        if self.claimed:
            check_claim(path)


A_FILE, A_FOLDER, A_RUN = Written("a file"), Written("a folder"), Written("a folder", claimed=True)
A_SOURCE = object()  # a note on an option whose value is a path that is read


def is_place(annotation: Any) -> bool:
    """Whether an option's value is a path, to be read or written."""
    notes = getattr(annotation, "__metadata__", ())
    return any(note is A_SOURCE or isinstance(note, Written) for note in notes)


def written(annotation: Any) -> list[Written]:
    """The notes in an option's annotation."""
    return [note for note in getattr(annotation, "__metadata__", ()) if isinstance(note, Written)]


def at_home(path: T) -> T:
    """`~/x` in somebody's home, unless there is a `~` here: a shell does that, but not inside quotes, nor of
    `--out=~/x`, and files and Python have no shell."""
    typed = str(path)
    if not typed.startswith("~") or os.path.lexists(typed):
        return path
    try:
        found = os.path.expanduser(typed)
    except ValueError:  # a null byte in it
        found = typed
    if found.startswith("~"):
        name = shown_path(typed)
        raise InputError(f"{name} begins with ~, and there is no such home; write ./{name} for what is called so.")
    return Path(found) if isinstance(path, Path) else found  # type: ignore[return-value]


def settled(value: Any) -> Any:
    """What was said for a path, for several, or for some by name: none of them empty, which would mean this folder."""
    if isinstance(value, Mapping):
        return {name: settled(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(settled, value))
    if isinstance(value, str) and not value.strip():
        raise InputError(f"{value!r} names no place; name one (. is the folder that you are in).")
    return at_home(value) if isinstance(value, (str, Path)) else value


# -- checks -------------------------------------------------------------------------------------------------


def check_file(path: str | Path) -> None:
    """Insist that a file can be written here, where there is none or another file."""
    _refuse(Path(path), "a file", ("", "a file", "a link to a file"))
    _check_parents(Path(path))


def check_folder(path: str | Path) -> None:
    """Insist that here is a folder to write into, or that it can be made."""
    path = Path(path)
    _refuse(path, "a folder", ("", "a folder", "a link to a folder"))
    if not path.is_dir():
        _check_parents(path)


def check_claim(folder: str | Path) -> None:
    """Insist that a folder is not there yet, is empty but for hidden files, or is a run's."""
    folder = Path(folder)
    if folder.is_dir() and not (folder / SPEC).exists():
        others = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        if others and not (folder / SPEC).exists():  # else another process has claimed it since
            raise InputError(
                f"{folder} is not a run folder but holds {others[0]!r}; choose another {option('out')}, or empty it."
            )


def check_swap(old: Path, new: Path) -> None:
    """Insist that the folder `new` may take the place of `old`: there is none, or one in a run's folder in which
    nothing lies that `new` does not have too."""
    kind = _refuse(old, "a folder", ("", "a folder"))
    if not kind:
        return
    if not (_is_run(old) or _is_run(old.parent)):
        raise InputError(f"{old} is a folder that Veridical did not make; move it away, or choose another place.")
    strange = sorted(_names(old) - _names(new))
    if strange:
        raise InputError(f"{old} holds {strange[0]!r}, which Veridical did not put there; move it away and run again.")


def check_shards(folder: str | Path) -> None:
    """Insist that a folder that a model is saved to holds no parts of another: the library would remove those."""
    parts = sorted(path.name for path in Path(folder).glob("*-of-*") if path.suffix in (".safetensors", ".bin"))
    if parts:
        raise InputError(
            f"{folder} holds {parts[0]!r}, a part of another model, which saving this one would remove; choose another "
            "folder, or move that model away."
        )


def check_apart(path: str | Path | None, option: str, *sources: Any) -> None:
    """Insist that what is written is none of the files that are read."""
    if path is None or not os.path.isfile(path):
        return
    for source in (at_home(source) if isinstance(source, (str, Path)) else source for source in sources):
        if isinstance(source, (str, Path)) and os.path.isfile(source) and os.path.samefile(path, source):
            raise InputError(f"{option} {path} would be written over the very file that is read; name another file.")
        if isinstance(source, (str, Path)) and os.path.isdir(source) and os.path.samefile(Path(path).parent, source):
            raise InputError(f"{option} {path} would be written over a file of {source}, which is read; name another.")


def check_page(path: str | Path | None, option: str) -> None:
    """Insist that a page takes the place of no file but a page: what is named by mistake may be a model's."""
    if path is not None and os.path.isfile(path) and Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{option} {path} is there and is no page (.html); name another file, or move it away.")


# -- looking ------------------------------------------------------------------------------------------------


def unwritable(path: str | Path, problem: Exception, kind: type[InputError] = InputError) -> InputError:
    reason = getattr(problem, "strerror", None) or problem
    return kind(f"{path} cannot be written ({reason}); make room or choose another folder.")


def _refuse(path: Path, wanted: Kind, allowed: tuple[str, ...]) -> str:
    """What is there, if it is allowed to be."""
    kind = _kind(path)
    if kind not in allowed:
        raise InputError(f"{path} is {kind}, and {wanted} cannot take its place; choose another place.")
    return kind


def _kind(path: Path) -> str:
    """What a name stands for, in words; nothing if it is free."""
    try:
        is_link = stat.S_ISLNK(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as problem:  # a name that is too long, a folder that may not be entered
        raise unwritable(path, problem) from problem
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return "a link that leads nowhere"
    kind = "a folder" if stat.S_ISDIR(mode) else "a file" if stat.S_ISREG(mode) else "a device"
    return f"a link to {kind}" if is_link else kind


def _check_parents(path: Path) -> None:
    """Insist that the folder that a new thing will stand in is there or can be made, and can be written to."""
    nearest = next((parent for parent in path.parents if os.path.lexists(parent)), None)
    if nearest is None:
        return
    if not os.path.isdir(nearest):
        raise InputError(f"{path} cannot be written, as {nearest} is {_kind(nearest)}; choose another place.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise unwritable(path, PermissionError(f"{nearest} is read-only"))


def _is_run(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (SPEC, STAMP))


def _names(folder: Path) -> set[str]:
    """Everything in a folder, by its path from there."""
    walk = ((Path(parent), [*folders, *files]) for parent, folders, files in os.walk(folder))
    return {str((parent / name).relative_to(folder)) for parent, names in walk for name in names}
