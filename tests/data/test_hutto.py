"""The rated sentences: parsing by hand-made lines, and the real corpora where an index is at hand."""

from __future__ import annotations

import pytest

from veridical.data import describe, load_data
from veridical.data.hutto import parse, unescape
from veridical.data.split import normalised


def test_the_sign_is_the_label_and_what_is_near_neutral_goes() -> None:
    text = "1\t2.5\tGood &amp;  short\r\n2_1\t-0.5\tBad\r\n3\t0.49\tSo so\r\n4\t0\tNothing"
    splits, dropped = parse("x", text, 0.5)
    found = sorted((ex.id, ex.text, ex.label) for some in splits.values() for ex in some)
    assert found == [("x-1", "Good & short", 1), ("x-2_1", "Bad", 0)]
    assert dropped == 2
    assert parse("x", text, 0)[1] == 1  # no sign, no label


def test_leaving_sentences_out_moves_no_other() -> None:
    lines = [f"{n}\t{1 if n % 2 else -1}\tsentence number {n}" for n in range(300)]
    where = {ex.id: split for split, some in parse("x", "\n".join(lines), 0.5)[0].items() for ex in some}
    fewer = parse("x", "\n".join(lines[::3]), 0.5)[0]
    assert all(where[ex.id] == split for split, some in fewer.items() for ex in some)
    assert set(where.values()) == {"train", "dev", "test"}


@pytest.mark.parametrize(
    ("escaped", "plain"),
    [
        ("a &lt;3 b", "a <3 b"),
        ("you&amp;#39;d", "you'd"),
        ("R&amp;D", "R&D"),
        ("cats &copy dogs", "cats &copy dogs"),
    ],
)
def test_entities(escaped: str, plain: str) -> None:
    assert unescape(escaped) == plain


@pytest.mark.asset
@pytest.mark.parametrize(
    ("name", "sizes", "positive"),
    [
        ("movies", (8129, 977, 966), 4996),
        ("amazon", (2412, 288, 285), 1750),
        ("tweets", (2791, 336, 305), 2345),
        ("nyt", (2410, 308, 252), 1187),
    ],
)
def test_the_real_corpora(name: str, sizes: tuple[int, int, int], positive: int) -> None:
    data = load_data(f"hutto/{name}")
    facts = describe(data)["splits"]
    assert tuple(facts[split]["n"] for split in ("train", "dev", "test")) == sizes
    assert sum(facts[split]["labels"]["positive"] for split in facts) == positive
    texts = [{normalised(ex.text) for ex in some} for some in data.splits.values()]
    assert sum(map(len, texts)) == len(set().union(*texts))
    assert not any("&amp;" in ex.text or "\ufffd" in ex.text for some in data.splits.values() for ex in some)
    ids = [ex.id for some in data.splits.values() for ex in some]
    assert len(set(ids)) == len(ids)
