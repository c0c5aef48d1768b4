from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veridical.core import store
from veridical.core.errors import BreakdownError, InputError


@dataclass(frozen=True)
class Point:
    x: int
    y: tuple[float, ...]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder with its bytes; of folders none."""
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


def interrupted(path: Path) -> None:
    with store.replacing(path) as temporary:
        temporary.write_text("half")
        assert temporary.parent == path.parent  # a rename across file systems would be a copy
        raise KeyboardInterrupt


def test_a_file_is_whole_or_absent(tmp_path: Path):
    path = tmp_path / "deep" / "file.txt"
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert names(tmp_path) == ["deep"]
    store.write_text(path, "old")
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_text() == "old"
    store.write_text(path, "new")
    assert path.read_text() == "new"
    assert names(tmp_path) == ["deep", "file.txt"]


def write_folder(path: Path, **files: str) -> None:
    with store.replacing(path) as temporary:
        temporary.mkdir()
        for name, text in files.items():
            (temporary / name).write_text(text)


def make(root: Path, *contents: str) -> None:
    """Files with their own path as text; folders where the path ends in a slash."""
    for content in contents:
        path = root / content
        (path if content.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not content.endswith("/"):
            path.write_text(content)


def test_a_folder_takes_the_place_of_a_folder_of_ours(tmp_path: Path):
    make(tmp_path, "spec.json", "stamp.json")
    for text in ("first", "second"):
        write_folder(tmp_path / "model", config=text)
        assert (tmp_path / "model" / "config").read_text() == text
    write_folder(tmp_path / "model", config="third", more="")
    assert names(tmp_path) == ["config", "model", "more", "spec.json", "stamp.json"]


@pytest.mark.parametrize(
    ("there", "sentence"),
    [
        (("model/config",), "model is a folder that Veridical did not make"),
        (("spec.json", "model/config"), "model is a folder that Veridical did not make"),
        (("spec.json", "stamp.json", "model/thesis.txt"), "model holds 'thesis.txt', which Veridical did not put"),
        (("spec.json", "stamp.json", "model/config", "model/notes/a"), "model holds 'notes', which Veridical did not"),
        (("spec.json", "stamp.json", "model"), "model is a file, and a folder cannot take its place"),
    ],
)
def test_a_folder_takes_no_other_place(tmp_path: Path, there: tuple[str, ...], sentence: str):
    make(tmp_path, *there)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=sentence):
        write_folder(tmp_path / "model", config="new")
    assert contents(tmp_path) == before


def test_a_file_takes_the_place_of_a_file_only(tmp_path: Path):
    make(tmp_path, "thesis/chapter.tex", "empty/")
    before = contents(tmp_path)
    for name in ("thesis", "empty"):
        with pytest.raises(InputError, match=f"{name} is a folder, and a file cannot take its place"):
            store.write_text(tmp_path / name, "page")
    os.mkfifo(tmp_path / "pipe")  # as /dev/null would be: a rename would put a file in its place
    with pytest.raises(InputError, match="pipe is a device, and a file cannot take its place"):
        store.write_text(tmp_path / "pipe", "page")
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "pipe").unlink()
    assert contents(tmp_path) == before


def test_a_link_gives_way_or_is_refused_and_what_it_leads_to_stays(tmp_path: Path):
    make(tmp_path, "spec.json", "stamp.json", "far/model/config", "far/page.html")
    before = contents(tmp_path / "far")
    for name, target in (("page", "far/page.html"), ("model", "far/model"), ("nowhere", "far/none")):
        (tmp_path / name).symlink_to(tmp_path / target)
    store.write_text(tmp_path / "page", "new")
    assert not (tmp_path / "page").is_symlink()
    for name, kind in (("model", "a link to a folder"), ("nowhere", "a link that leads nowhere")):
        with pytest.raises(InputError, match=f"{name} is {kind}, and a file cannot"):
            store.write_text(tmp_path / name, "new")
        with pytest.raises(InputError, match=f"{name} is {kind}, and a folder cannot"):
            write_folder(tmp_path / name, config="new")
        assert (tmp_path / name).is_symlink()
    store.remove(tmp_path / "nowhere")
    store.remove_file(tmp_path / "model")  # a link that stands where a file of ours would: it goes alone
    assert names(tmp_path) == ["config", "far", "model", "page", "page.html", "spec.json", "stamp.json"]
    assert contents(tmp_path / "far") == before


def test_a_folder_is_not_removed_for_a_file(tmp_path: Path):
    make(tmp_path, "checkpoint.pt/thesis.txt", "folder/a", "file")
    store.remove_file(tmp_path / "checkpoint.pt")
    store.remove_file(tmp_path / "file")
    store.remove_file(tmp_path / "none")
    store.remove(tmp_path / "folder")
    store.remove(tmp_path / "none")
    assert names(tmp_path) == ["checkpoint.pt", "thesis.txt"]


def test_leftovers_of_a_killed_writer_are_cleaned(tmp_path: Path):
    make(
        tmp_path,
        f"{store.TEMPORARY}0123abcd-model/weights",
        f"parts/{store.TEMPORARY}0123abcd-part-0000.parquet",
        "parts/.tmp-0123abcd-part-0001.parquet",  # as versions before 0.2 named them
        "parts/part-0001.parquet",
    )
    store.clean(tmp_path)
    assert names(tmp_path) == ["part-0001.parquet", "parts"]


@pytest.mark.whole
def test_what_a_killed_process_leaves_is_recognised(tmp_path: Path):
    # The name is asked of the writer, so that the two cannot drift apart.
    code = (
        "import os, sys; from veridical.core import store\n"
        "with store.replacing(sys.argv[1]) as temporary: temporary.write_text('half'); os.kill(os.getpid(), 9)"
    )
    for name in ("plain.json", "a name with\na line end", "x" * 250):
        assert subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=False).returncode == -9
    assert len(names(tmp_path)) == 3
    store.clean(tmp_path)
    assert names(tmp_path) == []


WRITER = """
import sys
from veridical.core import store
with store.replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.mark.whole
def test_what_another_process_still_writes_is_left_alone(tmp_path: Path):
    command = [sys.executable, "-c", WRITER, str(tmp_path / "x.json")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        store.clean(tmp_path)
        assert len(names(tmp_path)) == 1
        writer.kill()
    store.clean(tmp_path)
    assert names(tmp_path) == []


def test_what_another_machine_writes_is_left_alone_until_nothing_moves(tmp_path: Path):
    path = tmp_path / f"{store.TEMPORARY}0123abcd-89abcdef.1.2-x.json"
    path.touch()
    store.clean(tmp_path)
    assert path.exists()
    os.utime(path, (0, 0))
    store.clean(tmp_path)
    assert not path.exists()


def test_what_this_process_writes_is_left_alone_while_it_does(tmp_path: Path):
    with store.replacing(tmp_path / "x.json") as temporary:
        temporary.write_text("{}")
        store.clean(tmp_path)
    assert names(tmp_path) == ["x.json"]


def test_a_log_does_not_go_on_after_half_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = store.Log(tmp_path / "log.jsonl")

    class Full:
        def write(self, line: bytes) -> int:
            return len(line) // 2

    monkeypatch.setattr(log, "_file", Full())
    with pytest.raises(BreakdownError, match=r"log\.jsonl cannot be written \(No space left on device\)"):
        log.append({"step": 1})


def test_a_sign_that_there_was_no_room_for_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(BreakdownError, match="No space left on device"):
        store.create(tmp_path / "sign", "text")
    assert names(tmp_path) == []


def test_what_others_left_is_not_cleaned(tmp_path: Path):
    make(
        tmp_path,
        *("out/spec.json", "out/stamp.json"),
        *("out/.tmp-notes", "out/.tmp-abcd1234-mine/thesis.txt", "out/deep/.tmp-/a", "out/.tmp-veridical-notes"),
        *("out/.tmp-ABCD1234-spec.json", "out/.tmp-abcd1234-spec.json/a", f"far/{store.TEMPORARY}0123abcd-a"),
    )
    (tmp_path / "out" / "link").symlink_to(tmp_path / "far")
    (tmp_path / "out" / f"{store.TEMPORARY}0123abcd-far").symlink_to(tmp_path / "far")
    before = contents(tmp_path)
    store.clean(tmp_path / "out")
    assert contents(tmp_path) == before
    assert len([path for path in (tmp_path / "out").iterdir() if path.is_symlink()]) == 2


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(InputError, match=r"x\.json cannot be written \(No space left on device\); make room"):
        store.write_json(tmp_path / "x.json", {})
    assert names(tmp_path) == []


def test_a_file_where_a_folder_should_be_is_one_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        store.write_json(tmp_path / "file" / "x.json", {})


def test_formats_come_back(tmp_path: Path):
    store.write_json(tmp_path / "a.json", {"p": Point(1, (0.5,)), "n": np.float32(0.25), "path": Path("x/y")})
    assert store.read_json(tmp_path / "a.json") == {"p": {"x": 1, "y": [0.5]}, "n": 0.25, "path": "x/y"}
    store.write_jsonl(tmp_path / "a.jsonl", [{"a": "é"}, [1]])
    assert store.read_jsonl(tmp_path / "a.jsonl") == [{"a": "é"}, [1]]
    store.write_parquet(tmp_path / "k=v" / "a.parquet", {"id": ["a", "b"], "scores": [[1.0], []]})
    assert store.read_parquet(tmp_path / "k=v" / "a.parquet").to_pydict() == {
        "id": ["a", "b"],
        "scores": [[1.0], []],
    }


@pytest.mark.parametrize("read", [store.read_json, store.read_parquet])
def test_unreadable_files_name_themselves_and_the_remedy(tmp_path: Path, read):
    (tmp_path / "bad").write_text("{")
    with pytest.raises(InputError, match=r"bad cannot be read .* delete it to have it made again"):
        read(tmp_path / "bad")


def test_not_a_number_is_never_stored(tmp_path: Path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write_json(tmp_path / "a.json", float("nan"))
    assert names(tmp_path) == []


def test_a_log_survives_a_torn_line_and_is_cut_where_asked(tmp_path: Path):
    path = tmp_path / "train.jsonl"
    log = store.Log(path)
    for i in range(5):
        log.append({"step": i})
    log.close()
    with open(path, "ab") as file:
        file.write(b'{"step": 5, "lo')  # killed in the middle of a write
    assert [row["step"] for row in store.read_jsonl(path)] == [0, 1, 2, 3, 4]
    again = store.Log(path, keep=3)
    again.append({"step": "new"})
    assert again.count == 4
    again.close()
    assert [row["step"] for row in store.read_jsonl(path)] == [0, 1, 2, "new"]
    with pytest.raises(InputError, match="holds 4 whole lines, but 9 were written"):
        store.Log(path, keep=9)


@given(count=st.integers(0, 300), size=st.integers(1, 70))
def test_parts_cover_the_examples_once_in_order(count: int, size: int):
    found = store.parts("folder", count, size)
    assert [i for part in found for i in range(part.start, part.stop)] == list(range(count))
    assert all(part.stop - part.start == size for part in found[:-1])
    assert len({part.path for part in found}) == len(found)


def test_parts_are_done_when_their_file_exists_and_read_in_order(tmp_path: Path):
    found = store.parts(tmp_path / "p", 5, 2)
    for part in reversed(found):
        assert not part.done
        store.write_parquet(part.path, {"i": list(range(part.start, part.stop))})
        assert part.done
    assert store.read_parts(tmp_path / "p").to_pydict() == {"i": [0, 1, 2, 3, 4]}
    with pytest.raises(InputError, match="holds no parts"):
        store.read_parts(tmp_path / "none")


def test_the_hash_depends_on_the_value_alone():
    # Written down, so that a change of the hash, which would orphan every run folder, is noticed.
    assert store.stable_hash({"b": Point(1, (0.1, 2.0)), "a": None}) == "ea6171b4"
    assert store.stable_hash({"a": None, "b": {"y": [0.1, 2.0], "x": 1}}) == "ea6171b4"
    assert store.stable_hash({"a": None, "b": {"y": [0.1, 2.0], "x": 2}}) != "ea6171b4"
    with pytest.raises(TypeError, match="object has no plain form"):
        store.stable_hash(object())


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


@given(st.recursive(LEAVES, lambda v: st.lists(v) | st.dictionaries(st.text(max_size=3), v), max_leaves=8))
def test_the_hash_survives_a_trip_through_json(value: object):
    assert store.stable_hash(json.loads(json.dumps(value))) == store.stable_hash(value)


def test_run_folders_are_readable_and_stay_below_their_root(tmp_path: Path):
    spec = {"seed": 3}
    folder = store.run_folder(
        "runs", data="hutto/movies", model="minilm:layers=3", objective="a:weight=0.1,b", seed=3, spec=spec
    )
    assert folder == Path("runs/hutto-movies/minilm-layers=3") / f"a-weight=0.1-b-seed3-{store.stable_hash(spec)}"
    (tmp_path / "my model").mkdir()
    assert store.slug(str(tmp_path / "my model")) == "my-model"
    assert store.slug("../../etc") == "etc"
    assert store.slug("?!") == "unnamed"
    assert len(store.slug("long" * 200)) == 80


def test_a_folder_belongs_to_one_spec(tmp_path: Path):
    spec = {"seed": 1, "train": {"lr": 0.1, "batch": 8}}
    store.claim(tmp_path / "new", spec)
    store.write_json(tmp_path / "run" / "spec.json", spec)
    store.claim(tmp_path / "run", spec)
    other = {"seed": 1, "train": {"lr": 0.2, "batch": 8}}
    with pytest.raises(InputError, match=r"train\.lr is 0\.1 there and 0\.2 now; choose another out") as caught:
        store.claim(tmp_path / "run", other)
    assert "batch" not in str(caught.value)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("")
    with pytest.raises(InputError, match=r"not a run folder but holds 'cat\.jpg'"):
        store.claim(tmp_path / "photos", spec)


def test_a_folder_claimed_by_another_process_in_that_moment_is_compared(tmp_path: Path, monkeypatch):
    real = Path.iterdir

    def claimed_meanwhile(folder: Path):
        store.write_json(folder / "spec.json", {"seed": 1})
        return real(folder)

    monkeypatch.setattr(Path, "iterdir", claimed_meanwhile)
    store.claim(tmp_path, {"seed": 1})
    (tmp_path / "spec.json").unlink()
    with pytest.raises(InputError, match="seed is 1 there and 2 now"):
        store.claim(tmp_path, {"seed": 2})


def test_the_stamp_names_versions_but_no_host():
    import platform

    stamp = store.stamp(threads=2, seed=7)
    assert {"veridical", "torch", "transformers", "python", "platform", "time"} <= set(stamp)
    assert (stamp["threads"], stamp["seed"]) == (2, 7)
    assert platform.node() not in {str(value) for value in stamp.values()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": {"hash": "b"}}, r"holds an audit of another model: model\.hash is"),
        ({"corpora": {"x": "2"}, "looks": [24]}, r"holds an audit of other data, with other settings: corpora\.x is"),
    ],
)
def test_what_differs_is_said_in_words_first(tmp_path: Path, change: dict, words: str):
    spec = {"model": {"hash": "a"}, "corpora": {"x": "1"}, "looks": [24, 48]}
    store.write_json(tmp_path / "spec.json", spec)
    with pytest.raises(InputError, match=words):
        store.claim(tmp_path, {**spec, **change})


def test_a_file_written_apart_has_a_folder_of_its_own_until_it_is_whole(tmp_path: Path):
    # safetensors 0.8 writes under a temporary name beside the file, which nobody could clean up after a kill.
    path = tmp_path / "weights"
    with store.replacing(path, apart=True) as temporary:
        temporary.write_text("half")
        assert temporary.name == path.name
        assert temporary.parent.name.startswith(store.TEMPORARY)
        assert temporary.parent.parent == path.parent
        assert not path.exists()
    assert names(tmp_path) == ["weights"]
    assert path.read_text() == "half"


@pytest.mark.skipif(os.name == "nt", reason="rights are those of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077], ids=oct)
def test_what_a_library_made_for_its_owner_alone_is_shared_as_any_new_file(tmp_path: Path, mask: int):
    # The folder of a run stands on a shared disk, and a colleague loads its model.
    before = os.umask(mask)
    try:
        with store.replacing(tmp_path / "model") as temporary:
            (temporary / "deep").mkdir(parents=True)
            os.close(os.open(temporary / "deep" / "weights", os.O_CREAT | os.O_WRONLY, 0o600))
        with store.replacing(tmp_path / "best", apart=True) as temporary:
            os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o600))
    finally:
        os.umask(before)
    for path in (tmp_path / "model" / "deep" / "weights", tmp_path / "best"):
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_what_a_library_left_beside_a_file_written_apart_goes_after_a_kill(tmp_path: Path):
    code = (
        "import os, sys; from veridical.core import store\n"
        "with store.replacing(sys.argv[1], apart=True) as temporary:\n"
        "    temporary.with_name('.tmpXyZ').touch(); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "weights")], check=False).returncode == -9
    assert len(names(tmp_path)) == 2  # the folder, and the library's file in it
    store.clean(tmp_path)
    assert names(tmp_path) == []
