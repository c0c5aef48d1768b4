from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veridical.core import assets
from veridical.core.errors import InputError
from veridical.model.vectors import load_vectors

GLOVE = "the 0.1 -0.2 3e-1\n, 1 2 3\n. . . 4 5 6\ngood 7 8 9\ngood 0 0 0\ncaf\u00e9 1.5 0 -1\n"


def write(path, text: str | bytes):
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
@pytest.mark.parametrize("header", ["", "6 3\n"])
def test_a_text_file_with_or_without_header_and_gzip(tmp_path, name, header):
    source = write(tmp_path / name, header + GLOVE)
    found = load_vectors(source, ["the", "good", "caf\u00e9", ". . .", "absent"])
    expected = {
        "the": [0.1, -0.2, 0.3],
        "good": [7, 8, 9],  # the first of two
        "caf\u00e9": [1.5, 0, -1],
        ". . .": [4, 5, 6],  # some words of GloVe 840B hold spaces
    }
    assert set(found) == set(expected)
    for word, vector in expected.items():
        assert found[word].dtype == np.float32
        np.testing.assert_array_equal(found[word], np.array(vector, dtype=np.float32))


def test_line_ends_of_another_system_and_trailing_spaces(tmp_path):
    source = write(tmp_path / "v.vec", "2 2\r\na 1 2 \r\nb 3 4 \r\n")
    found = load_vectors(source, {"a", "b"})
    np.testing.assert_array_equal(found["b"], [3, 4])


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a 1 2\nb 1\n", 2, "1 numbers after the word where 2 are due"),
        ("a 1 2\nb 1 2 3\n", 2, "more numbers after the word than the 2"),
        ("a 1 2\n\n", 2, "0 numbers"),
        ("a\n", 1, "0 numbers"),
        ("a 1 2\nb 1 x\n", 2, "other than finite numbers after 'b'"),
        ("a 1 2\nb 1 nan\n", 2, "other than finite numbers after 'b'"),
        (b"a 1 2\n\xff 1 2\n", 2, "not UTF-8"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, line, what):
    source = write(tmp_path / "bad.txt", text)
    with pytest.raises(InputError, match=rf"bad\.txt', line {line}, has .*{what}.*mend or delete"):
        load_vectors(source, {"a", "b"})


def test_the_header_tells_where_a_first_word_of_two_parts_ends(tmp_path):
    source = write(tmp_path / "v.vec", "2 2\n. . 1 2\nb 3 4\n")
    np.testing.assert_array_equal(load_vectors(source, {". ."})[". ."], [1, 2])


def test_a_broken_gzip_file(tmp_path):
    path = tmp_path / "v.txt.gz"
    path.write_bytes(gzip.compress(GLOVE.encode() * 50)[:-20])
    with pytest.raises(InputError, match="not a whole gzip file"):
        load_vectors(path, {"absent"})
    whole = bytearray(gzip.compress(GLOVE.encode() * 50))
    whole[20:40] = bytes(20)
    path.write_bytes(whole)
    with pytest.raises(InputError, match="not a whole gzip file"):
        load_vectors(path, {"absent"})
    path.write_text("the 1 2 3\n")
    with pytest.raises(InputError, match="not a whole gzip file"):
        load_vectors(path, {"the"})


def test_no_word_found_and_no_such_source(tmp_path):
    source = write(tmp_path / "v.txt", GLOVE)
    with pytest.raises(InputError, match=r"None of the 1 words.*lower case"):
        load_vectors(source, {"GOOD"})
    with pytest.raises(InputError, match="'glove-7b'; give glove-6b-50d, or the path"):
        load_vectors("glove-7b", {"good"})


def asset_folder(path, words, matrix):
    np.save(path / "glove_6B_50d_emb.npy", matrix, allow_pickle=True)
    pq.write_table(pa.table({"index": words}), path / "glove_6B_index.parquet")
    return path


def test_the_asset_is_read_by_its_index(tmp_path, monkeypatch):
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    folder = asset_folder(tmp_path, ["the", "good", "bad", "film"], matrix)
    monkeypatch.setattr(assets, "fetch", lambda name: folder)
    found = load_vectors("glove-6b-50d", {"bad", "the", "absent"})
    assert set(found) == {"bad", "the"}
    np.testing.assert_array_equal(found["bad"], matrix[2])
    found["bad"][0] = -1  # a copy, not a window into the file
    np.testing.assert_array_equal(load_vectors("glove-6b-50d", {"bad"})["bad"], matrix[2])


def test_an_asset_that_is_not_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(assets, "fetch", lambda name: tmp_path)
    with pytest.raises(InputError, match=r"0 files.*fetched again"):
        load_vectors("glove-6b-50d", {"good"})
    asset_folder(tmp_path, ["a", "b"], np.zeros((3, 2), dtype=np.float32))
    with pytest.raises(InputError, match=r"2 words for a matrix of shape \(3, 2\)"):
        load_vectors("glove-6b-50d", {"good"})


def test_pickled_arrays_are_never_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(assets, "fetch", lambda name: tmp_path)
    asset_folder(tmp_path, ["good"], np.array([["x"]], dtype=object))
    with pytest.raises(ValueError, match="Python object"):
        load_vectors("glove-6b-50d", {"good"})


@pytest.mark.asset
def test_the_real_asset():
    found = load_vectors("glove-6b-50d", {"the", "good", "n't", "Good"})
    assert set(found) == {"the", "good", "n't"}
    assert all(vector.shape == (50,) for vector in found.values())
    np.testing.assert_allclose(found["the"][:3], [0.418, 0.24968, -0.41242], rtol=1e-6)
