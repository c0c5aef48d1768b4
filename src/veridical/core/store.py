"""Plain files that are whole or absent: atomic writes, parts, run folders, logs, provenance.

Everything is written under a temporary name in its own folder, synced, then renamed, so a file that exists is
done and kill -9 at any moment leaves at most a temporary file, which `clean` removes. What may take the place of what,
`core/place.py` says; nothing that Veridical did not make is removed, and no link is followed.

There is no lock and no status field: a thing is done when it is there, and who works on one that is not is seen by its
sign, `<thing>.running-1`, a file that is created exclusively and touched while its worker lives. `grid/liveness.py` has
that protocol, the only one there is. This is the only module that opens files for writing.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from veridical.core import place, plugins
from veridical.core.errors import BreakdownError, InputError
from veridical.core.process import Process, this_process
from veridical.core.readable import parse_json
from veridical.core.records import LATER
from veridical.core.spec import slug
from veridical.core.wording import option, other_work

if TYPE_CHECKING:
    import pyarrow

TEMPORARY = ".tmp-veridical-"  # prefix of everything not yet whole
# A token, the process that writes (machine, number, start; not in folders of before), and what it is to become.
_LEFTOVER = re.compile(rf"{re.escape(TEMPORARY)}([0-9a-f]{{8}})-(?:([0-9a-f]{{8}})\.([0-9]+)\.([0-9]*)-)?.+", re.DOTALL)
_OLD_LEFTOVER = re.compile(r"\.tmp-[0-9a-f]{8}-(.+)", re.DOTALL)  # of versions before 0.2: others may name theirs so
_FORSAKEN = 600.0  # seconds without a change after which another machine's writer counts as dead
_writing: set[str] = set()  # tokens of what this process is writing


# -- whole or absent ----------------------------------------------------------------------------------------


@contextmanager
def replacing(path: str | Path, *, apart: bool = False) -> Iterator[Path]:
    """A temporary path to write a file or folder to; it takes the place of `path` when the block ends.

    With `apart` a file is written in a temporary folder of its own: for libraries that put a temporary file beside it,
    under a name that `clean` could not tell from somebody else's.
    """
    path, token = Path(path), secrets.token_hex(4)
    temporary = _temporary(path, token)
    written = temporary / path.name if apart else temporary
    _writing.add(token)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if apart:
            temporary.mkdir()
        yield written
        if temporary.is_dir():
            _share(temporary)
        for inner in [*written.rglob("*"), written] if written.is_dir() else [written]:
            _sync(inner)
        if written.is_dir():
            _swap(path, written, token)
        else:
            place.check_file(path)
            os.replace(written, path)
        if apart:
            remove(temporary)
        _sync(path.parent)
    except BaseException as problem:
        remove(temporary)
        if reason := _disk_error(problem):
            raise place.unwritable(path, reason, BreakdownError) from problem
        raise
    finally:
        _writing.discard(token)


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write bytes to; it takes the place of `path` when the block ends."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        yield file


def _disk_error(problem: BaseException) -> OSError | None:
    """What the disk said, in whatever words a library that writes files passes it on: pyarrow, safetensors, torch."""
    if number := re.search(r"\(os error (\d+)\)|\[errno (\d+)\]", str(problem)):
        code = int(number[1] or number[2])
        return OSError(code, os.strerror(code))
    origin = problem.__context__ if isinstance(problem, RuntimeError) else problem
    return origin if isinstance(origin, OSError) else None


def _temporary(path: Path, token: str, mark: str = "") -> Path:
    # Part of the name is enough for a reader, and a long one would become too long for the file system.
    writer = this_process()
    return path.with_name(
        f"{TEMPORARY}{token}-{writer.machine}.{writer.process}.{writer.started}-{mark}{path.name[:40]}"
    )


def _swap(path: Path, new: Path, token: str) -> None:
    """Put a folder in its place. It cannot be renamed onto another: the old one is moved out of the way first."""
    place.check_swap(path, new)
    if not path.is_dir():
        os.replace(new, path)
        return
    old = _temporary(path, token, "old-")
    os.replace(path, old)
    os.replace(new, path)
    shutil.rmtree(old)


def create(path: str | Path, text: str) -> bool:
    """Make a new file, unless there is one: of several processes that try, on whatever machines, one succeeds."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as problem:
        if isinstance(problem, FileExistsError) and path.parent.is_dir():
            return False
        raise place.unwritable(path, problem, BreakdownError) from problem
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        remove_file(path)  # half of it would say that somebody has made it
        raise place.unwritable(path, problem, BreakdownError) from problem
    return True


def _share(folder: Path) -> None:
    """Let whoever may read a new folder read its files: safetensors 0.8 makes its own for their owner alone."""
    rights = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_mode & 0o777 == 0o600:
            path.chmod(rights)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: str | Path) -> None:
    """Delete a file or a folder that was made here, if it is there. No link is followed."""
    while os.path.isdir(path) and not os.path.islink(path):
        try:
            shutil.rmtree(path)
        except FileNotFoundError:  # another process was first with a part of it
            continue
    if os.path.lexists(path):
        Path(path).unlink(missing_ok=True)  # as above


def remove_file(path: str | Path) -> None:
    """Delete a file that was made here, if it is there; a folder of that name is somebody else's, and stays."""
    if os.path.islink(path) or not os.path.isdir(path):
        remove(path)


def clean(folder: str | Path) -> None:
    """Delete what writers that were killed left behind; what others still write is theirs. No link is followed."""
    for parent, folders, files in os.walk(folder):
        leftovers = [name for name in (*folders, *files) if _is_leftover(Path(parent) / name)]
        folders[:] = [name for name in folders if name not in leftovers]
        for name in leftovers:
            remove(Path(parent) / name)


def _is_leftover(path: Path) -> bool:
    """Whether a name is one that writers here give. The old form says less: it counts beside the thing it became."""
    if path.is_symlink():
        return False
    if ours := _LEFTOVER.fullmatch(path.name):
        token, machine, number, started = ours.groups()
        return token not in _writing and (machine is None or _is_dead(Process(machine, int(number), started), path))
    old = _OLD_LEFTOVER.fullmatch(path.name)
    became = path.with_name(old[1]) if old else None
    return became is not None and (became.is_dir() if path.is_dir() else became.is_file())


def _is_dead(writer: Process, path: Path) -> bool:
    """Whether nobody goes on writing to a temporary path. Of another machine's process only the path's time tells."""
    if writer.is_here():
        return writer == this_process() or writer.is_gone()
    try:
        return time.time() - path.stat().st_mtime > _FORSAKEN
    except OSError:  # it has just become what it was to become
        return False


# -- formats ------------------------------------------------------------------------------------------------


def write_text(path: str | Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: Any) -> None:
    write_text(path, json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | Path) -> Any:
    try:
        return parse_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InputError(f"{path} cannot be read as JSON ({problem}); delete it to have it made again.") from problem


def write_jsonl(path: str | Path, rows: Sequence[Any]) -> None:
    write_text(path, "".join(map(_line, rows)))


def read_jsonl(path: str | Path) -> list[Any]:
    """The rows up to the first line that is not whole: a killed writer may have torn the last one."""
    rows: list[Any] = []
    for line in Path(path).read_bytes().split(b"\n")[:-1]:  # what follows the last line end is torn or empty
        try:
            rows.append(parse_json(line))
        except ValueError:
            break
    return rows


def write_parquet(path: str | Path, table: pyarrow.Table | Mapping[str, Sequence[Any]]) -> None:
    """A table, or a mapping of columns."""
    import pyarrow
    import pyarrow.parquet

    if not isinstance(table, pyarrow.Table):
        table = pyarrow.table(dict(table))
    with replacing(path) as temporary:
        pyarrow.parquet.write_table(table, temporary)


def read_parquet(path: str | Path, columns: Sequence[str] | None = None) -> pyarrow.Table:
    import pyarrow
    import pyarrow.parquet

    try:
        # A path is opened by us: pyarrow would read `name=value` in folder names as partition columns.
        with open(path, "rb") as file:
            return pyarrow.parquet.read_table(file, columns=None if columns is None else list(columns))
    except (OSError, pyarrow.ArrowException) as problem:
        reason = next(iter(str(problem).splitlines()), type(problem).__name__)  # pyarrow goes on for lines
        raise InputError(f"{path} cannot be read as Parquet ({reason}); delete it to have it made again.") from problem


class Log:
    """A JSONL file that grows by whole lines. Opening it keeps the first `keep` rows and drops the rest."""

    def __init__(self, path: str | Path, keep: int = 0):
        rows = read_jsonl(path) if keep and Path(path).exists() else []
        if len(rows) < keep:
            lost = f"{path} holds {len(rows)} whole lines, but {keep} were written"
            raise InputError(f"{lost}; it was changed by hand: delete its folder to start again.")
        write_jsonl(path, rows[:keep])
        self.count = keep
        self._path = path
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115  one write per line, closed by close()

    def append(self, row: Any) -> None:
        line = _line(row).encode()
        try:
            if self._file.write(line) < len(line):  # a disk takes what it has room for, and says no the next time
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as problem:
            raise place.unwritable(self._path, problem, BreakdownError) from problem
        self.count += 1

    def sync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as problem:
            raise place.unwritable(self._path, problem, BreakdownError) from problem
        if not os.fstat(self._file.fileno()).st_nlink:
            raise BreakdownError(f"{self._path} was deleted while it was written; delete its folder and start again.")

    def close(self) -> None:
        self._file.close()


def _line(row: Any) -> str:
    return json.dumps(plain(row), ensure_ascii=False, allow_nan=False) + "\n"


# -- parts --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the example order with the file that holds its result; done when the file exists."""

    path: Path
    start: int
    stop: int

    @property
    def done(self) -> bool:
        return self.path.exists()


def parts(folder: str | Path, count: int, size: int) -> list[Part]:
    """`count` examples in their order, cut into parts of `size` before anything runs."""
    starts = range(0, count, size)
    return [Part(Path(folder) / f"part-{i:04d}.parquet", s, min(s + size, count)) for i, s in enumerate(starts)]


def read_parts(folder: str | Path, columns: Sequence[str] | None = None) -> pyarrow.Table:
    """The parts of a folder, one after the other; only these columns of them, if given."""
    import pyarrow

    paths = sorted(Path(folder).glob("part-*.parquet"), key=lambda path: int(path.stem.removeprefix("part-")))
    if not paths:
        raise InputError(f"{folder} holds no parts (part-0000.parquet, ...); run the stage that writes them.")
    # A column that holds nothing in one part has no type there, and a file of others may hold doubles for floats.
    return pyarrow.concat_tables([read_parquet(path, columns) for path in paths], promote_options="permissive")


# -- run folders --------------------------------------------------------------------------------------------


def later(default: Any) -> Any:
    """A field that a record was given later: at its default it is left out of specs, so that those written before it
    was there, and their hashes, stay what they are."""
    return dataclasses.field(default=default, metadata=LATER)


def plain(value: Any) -> Any:
    """`value` as JSON knows it: records as mappings, tuples as lists, paths and NumPy values as theirs."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = [(f, getattr(value, f.name)) for f in dataclasses.fields(value)]
        return {f.name: plain(v) for f, v in held if not (LATER.items() <= f.metadata.items() and v == f.default)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(inner) for inner in value)
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value).__module__ == "numpy":
        return plain(value.tolist())  # type: ignore[union-attr]
    raise TypeError(f"{type(value).__name__} has no plain form to store or hash")


def stable_hash(value: Any) -> str:
    """8 hex digits that depend on the value alone, not on process, key order or platform."""
    text = json.dumps(plain(value), sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def run_folder(root: str | Path, *, data: str, model: str, objective: str, seed: int, spec: Any) -> Path:
    """`<root>/<data>/<model>/<objective>-seed3-7f2c91ab`: readable, and unique by the hash of the spec."""
    return Path(root) / slug(data) / slug(model) / f"{slug(objective)}-seed{seed}-{stable_hash(spec)}"


def claim(folder: str | Path, spec: Any) -> None:
    """Insist that a folder is new or belongs to this very spec; the error names the keys that differ."""
    place.check_claim(folder)
    path = Path(folder) / place.SPEC
    if path.exists():
        insist(path, spec)


def insist(path: str | Path, spec: Any) -> None:
    """Insist that a file holds this very spec; the error names the keys that differ."""
    folder, held, wanted = Path(path).parent, _flat(read_json(path)), _flat(plain(spec))
    differing = [key for key in sorted({*held, *wanted}) if held.get(key) != wanted.get(key)]
    if differing:
        changes = ", ".join(f"{key} is {held.get(key)!r} there and {wanted.get(key)!r} now" for key in differing[:3])
        more = f" (and {len(differing) - 3} more)" if len(differing) > 3 else ""
        raise InputError(
            f"{folder} holds {other_work(held, differing)}: {changes}{more}; choose another {option('out')}, "
            "or delete the folder."
        )


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {prefix: value}
    inner = (_flat(v, f"{prefix}.{key}" if prefix else key) for key, v in value.items())
    return {key: v for part in inner for key, v in part.items()}


def stamp(**facts: Any) -> dict[str, Any]:
    """Where a result comes from: versions (of users' own parts too), platform and time, with the facts given. Names no
    host or user."""
    names = ("veridical", "torch", "transformers", "accelerate", "numpy")
    parts = plugins.fingerprints()
    return {
        **{name: metadata.version(name) for name in names},
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        **({"with": parts} if parts else {}),
        **facts,
    }
