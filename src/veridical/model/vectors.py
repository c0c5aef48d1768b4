"""Word vectors: from a GloVe or fastText text file, or the 400,000 GloVe vectors that come as an asset.

Only the words asked for are kept, so that memory is bounded by the vocabulary and not by the file.
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Collection
from pathlib import Path

import numpy as np

from veridical.core.errors import InputError

ASSETS = ("glove-6b-50d",)


def load_vectors(source: str | Path, words: Collection[str]) -> dict[str, np.ndarray]:
    """The float32 vectors of those `words` that `source` knows, all of one width.

    `source` is `glove-6b-50d` or the path of a text file, gzipped or not: one word and its numbers per line,
    separated by spaces, with or without fastText's first line of two counts.
    """
    wanted = frozenset(words)
    if str(source) in ASSETS:
        vectors = _asset(str(source), wanted)
    else:
        path = Path(os.path.expanduser(source))
        if not os.path.isfile(path):
            raise InputError(
                f"There are no word vectors {str(source)!r}; give {' or '.join(ASSETS)}, or the path of a "
                "GloVe or fastText text file."
            )
        vectors = _text_file(path, wanted)
    if not vectors:
        raise InputError(
            f"None of the {len(wanted)} words of the vocabulary has a vector in {str(source)!r}; check the "
            "language, and whether the words should be in lower case."
        )
    return vectors


def _asset(name: str, words: frozenset[str]) -> dict[str, np.ndarray]:
    import pyarrow.parquet as pq

    from veridical.core.assets import fetch

    folder = fetch(name)
    matrix = np.load(_only(folder, "*_emb.npy"), mmap_mode="r", allow_pickle=False)  # [V, D]
    table = pq.read_table(_only(folder, "*_index.parquet"))
    index = table.column(0).to_pylist()
    if matrix.ndim != 2 or len(index) != matrix.shape[0]:
        raise InputError(
            f"{str(folder)!r} holds {len(index)} words for a matrix of shape {matrix.shape}; delete the "
            "folder, so that it is fetched again."
        )
    return {word: np.array(matrix[i], dtype=np.float32) for i, word in enumerate(index) if word in words}


def _only(folder: Path, pattern: str) -> Path:
    files = sorted(folder.rglob(pattern))
    if len(files) != 1:
        raise InputError(
            f"{str(folder)!r} holds {len(files)} files {pattern!r} where one is due; delete the folder, so "
            "that it is fetched again."
        )
    return files[0]


def _text_file(path: Path, words: frozenset[str]) -> dict[str, np.ndarray]:
    vectors: dict[str, np.ndarray] = {}
    width = 0
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as lines:
        try:
            for number, raw in enumerate(lines, start=1):
                line = raw.rstrip(b"\r\n ")
                if number == 1 and _is_header(line):
                    width = int(line.split(b" ")[1])
                    continue
                count = line.count(b" ")
                width = width or count  # without a header the first line decides
                if not 0 < width <= count:
                    due = width or "some"
                    raise _bad(path, number, f"{count} numbers after the word where {due} are due")
                word, *numbers = line.rsplit(b" ", width)
                # A few words of GloVe 840B hold spaces; a number before the numbers is one too many.
                if count > width and _is_number(word.rsplit(b" ", 1)[1]):
                    raise _bad(path, number, f"more numbers after the word than the {width} that are due")
                try:
                    name = word.decode()
                except UnicodeDecodeError:
                    raise _bad(path, number, "a word that is not UTF-8") from None
                if name not in words or name in vectors:  # a word written twice keeps its first vector
                    continue
                if not all(map(_is_number, numbers)):
                    raise _bad(path, number, f"something other than finite numbers after {name!r}")
                vectors[name] = np.array(numbers, dtype=np.float32)
        except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
            raise InputError(
                f"{str(path)!r} is not a whole gzip file ({problem}); fetch it again, or unpack it yourself."
            ) from problem
    return vectors


def _is_header(line: bytes) -> bool:
    """fastText's first line, `words width`; nobody makes vectors of one number for words of digits."""
    parts = line.split(b" ")
    return len(parts) == 2 and all(part.isdigit() for part in parts)


def _is_number(text: bytes) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _bad(path: Path, number: int, what: str) -> InputError:
    return InputError(
        f"{str(path)!r}, line {number}, has {what}; each line is a word and its numbers, separated by single "
        "spaces: mend or delete that line."
    )
