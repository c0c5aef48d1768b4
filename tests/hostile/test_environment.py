"""Surroundings that nobody wishes for, each in a process of its own: no locale, no folder, no home, no room."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tiny import tiny

DATA = json.dumps({"text": "naïve café 你好 💥", "label": 0, "id": "é"}, ensure_ascii=False) + "\n"
BARE = {"PYTHONUTF8": "0", "LC_ALL": "C", "LANG": "C"}
VERIDICAL = (sys.executable, "-m", "veridical")


def veridical(*words: str | bytes, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    around = {**os.environ, **environment}
    return subprocess.run([*VERIDICAL, *words], capture_output=True, cwd=cwd, env=around, timeout=300)


def sentence(done: subprocess.CompletedProcess[bytes], code: int = 2) -> str:
    assert (done.returncode, done.stdout) == (code, b""), done.stderr.decode()
    (line,) = done.stderr.decode().strip().splitlines()
    return line


@pytest.fixture
def data(tmp_path: Path) -> Path:
    place = tmp_path / "naïve.jsonl"
    place.write_text(DATA, encoding="utf-8")
    return place


@pytest.mark.parametrize("environment", [BARE, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX"}], ids=str)
def test_text_beyond_ascii_is_shown_whatever_the_locale(data: Path, environment: dict[str, str]) -> None:
    done = veridical("data", "show", str(data), **environment)
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode()
    assert "naïve café 你好 💥" in shown or r"na\xefve caf\xe9 \u4f60\u597d \U0001f4a5" in shown


def test_files_are_utf8_without_a_locale(tmp_path: Path) -> None:
    model, tokenizer = tiny("bert")
    model.save_pretrained(tmp_path / "modèle")
    tokenizer.save_pretrained(tmp_path / "modèle")
    words = ("--text", "naïve café", "--method", "random", "--out", "é.jsonl", "--html", "é.html")
    done = veridical("explain", "modèle", *words, cwd=tmp_path, **BARE)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().split() == ["é.html", "é.jsonl"]
    assert json.loads((tmp_path / "é.jsonl").read_text("utf-8"))["text"] == "naïve café"
    assert "naïve" in (tmp_path / "é.html").read_text("utf-8")


@pytest.mark.parametrize("environment", [{}, BARE], ids=["usual", "bare"])
@pytest.mark.parametrize(
    "words",
    [
        ("explain", "x", "--text", b"caf\xe9"),
        ("explain", b"caf\xe9", "--text", "x"),
        ("explain", "x", "--text", "x", "--out", b"\xff.jsonl"),
        ("train", "--data", b"\xff"),
        ("status", b"\xff"),
        (b"\xff",),
    ],
    ids=repr,
)
def test_bytes_that_are_no_text(words: tuple[str | bytes, ...], environment: dict[str, str]) -> None:
    assert "is not UTF-8" in sentence(veridical(*words, **environment))


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("status",),
        ("data", "list"),
        ("explain", "x", "--text", "x"),
        ("train", "--data", "planted", "--out", "x"),
        ("run", "x.toml"),
    ],
    ids=" ".join,
)
def test_a_working_directory_that_is_gone(words: tuple[str, ...], tmp_path: Path) -> None:
    typed = " ".join(words)
    gone = f'cd "{tmp_path}" && rmdir "{tmp_path}" && exec {" ".join(VERIDICAL)} {typed}'
    done = subprocess.run(["bash", "-c", gone], capture_output=True, timeout=300)
    assert "The folder that you are in is gone" in sentence(done)


def test_no_home(tmp_path: Path) -> None:
    without = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    done = subprocess.run([*VERIDICAL, "data", "show", "planted"], capture_output=True, env=without, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_cache_in_a_home_of_nobody() -> None:
    done = veridical("data", "show", "hutto/movies", VERIDICAL_CACHE="~nobody-here/x")
    assert "there is no such home" in sentence(done)


@pytest.mark.parametrize("reader", ["head -n 1", "true"])
def test_a_reader_that_goes_early(reader: str) -> None:
    command = f"set -o pipefail; {' '.join(VERIDICAL)} list | {reader}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=300)
    assert done.stderr == b""
    assert done.returncode in (0, 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="of Linux")
@pytest.mark.parametrize("words", ["data list", "list methods --json", "--version", "--help"])
def test_an_output_that_is_full(words: str) -> None:
    command = f"{' '.join(VERIDICAL)} {words} > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=300)
    (line,) = done.stderr.decode().strip().splitlines()
    assert "No space left on device" in line
    assert done.returncode == 1


def test_an_output_that_is_closed() -> None:
    command = f"{' '.join(VERIDICAL)} data show planted >&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=300)
    assert b"Traceback" not in done.stderr
