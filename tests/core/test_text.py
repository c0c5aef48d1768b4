from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from goldens import GOLDEN
from veridical.core.records import Encoded, Example
from veridical.core.text import align, by_word, marked, trim, words_of
from veridical.data.rows import spans_of_words

TEXT = st.text(st.sampled_from("ab, \n\u00e9\U0001f600\u00a0"), max_size=40)


def encoded(text: str, spans: list[tuple[int, int]], rationale=()) -> Encoded:
    n = len(spans)
    return Encoded(
        Example("x", text, rationale=rationale),
        (7,) * n,
        (0,) * n,
        tuple(spans),
        tuple(align(text, spans)),
        (True,) * n,
    )


@given(TEXT)
def test_words_are_what_white_space_separates(text):
    assert [text[a:b] for a, b in words_of(text)] == text.split()


@given(TEXT.filter(lambda text: text.strip()))
def test_the_pass_over_spans_agrees_with_looking_each_up(text):
    spans = [trim(text, (i, i + 1)) for i in range(len(text))]
    ends = [end for _, end in words_of(text)]
    assert align(text, spans) == [
        next((word for word, end in enumerate(ends) if start < end), len(ends) - 1) for start, _ in spans
    ]


def test_white_space_at_the_ends_of_a_token_is_not_its_own():
    assert trim("a  b c", (1, 4)) == (3, 4)
    assert trim("a  b", (1, 3)) == (3, 3)


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_flags_over_words_become_spans_that_mark_those_words(flags):
    text = "  ".join("w" * (i + 1) for i in range(len(flags)))
    spans = spans_of_words(text, flags)
    e = encoded(text, words_of(text), spans)
    assert marked(e).tolist() == flags
    assert all(b <= a for (_, b), (a, _) in pairwise(spans))


def test_scores_of_words_are_the_golden_ones():
    golden = GOLDEN["wordpiece_to_word"]
    e = encoded("unbelievable film", [(0, 2), (2, 8), (8, 12), (13, 17)])
    assert list(e.words) == golden["inputs"]["word_ids"]
    for how in ("sum", "max", "mean"):
        found = by_word(e, np.array(golden["inputs"]["scores"]), how)
        np.testing.assert_allclose(found, golden["expected"][how], atol=1e-7)
        assert int(found.argmax()) == golden["expected"]["top1"][how]
