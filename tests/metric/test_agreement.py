"""Agreement of two explanations: rank correlation and overlap of the top tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from goldens import GOLDEN
from veridical.core.errors import InputError
from veridical.core.records import Encoded, Example, Explained
from veridical.metric import metrics
from veridical.metric.agreement import kendall
from veridical.metric.jaccard import overlap


def explained(scores, words=None, text="a b c d e f g h i j k l") -> Explained:
    """An explanation between two special tokens; tokens carry the number of their word."""
    n = len(scores)
    words = tuple(range(n)) if words is None else tuple(words)
    encoded = Encoded(
        Example("one", text),
        ids=(1, *(10 + w for w in words), 2),
        types=(0,) * (n + 2),
        spans=((0, 0), *((2 * w, 2 * w + 1) for w in words), (0, 0)),
        words=(-1, *words, -1),
        free=(False, *[True] * n, False),
    )
    return Explained(encoded, 0, np.array([1.0]), np.array([0.0]), np.array([0, *scores, 0], dtype=np.float32))


def value(name, a, b, **options):
    choice = metrics.choose(name, **options)
    return choice.entry.run(a, b, **choice.options).value


def test_golden_kendall():
    given, expected = GOLDEN["kendall_tau"]["inputs"], GOLDEN["kendall_tau"]["expected"]
    a, b = explained(given["a"]), explained(given["b"])
    assert value("agreement", a, b) == pytest.approx(expected["tau"], abs=1e-9)
    tied = explained(given["tied_a"]), explained(given["tied_b"])
    assert value("agreement", *tied) == pytest.approx(expected["tau_b_with_ties"], abs=1e-9)
    assert value("agreement", explained([0.5] * 5), b) is None


def test_golden_jaccard():
    given, expected = GOLDEN["jaccard_at_25"]["inputs"], GOLDEN["jaccard_at_25"]["expected"]
    a, b = explained(given["a"]), explained(given["b"])
    assert value("jaccard", a, b) == pytest.approx(expected["jaccard"], abs=1e-9)
    assert value("jaccard", a, a) == expected["identical"]
    ten = explained(given["ten_tokens"]["a"]), explained(given["ten_tokens"]["b"])
    for rounding in ("ceil", "floor"):
        found = value("jaccard", *ten, rounding=f"{rounding}_min1")
        assert found == pytest.approx(expected["ten_tokens"][rounding]["jaccard"], abs=1e-9)
    assert overlap(np.array([1.0, 2.0]), np.array([2.0, 1.0]), 0) is None


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=15))
def test_kendall_equals_scipy(rows):
    a, b = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    expected = kendalltau(a, b).statistic
    if np.isnan(expected):
        assert kendall(a, b) is None
    else:
        assert kendall(a, b) == pytest.approx(expected, abs=1e-12)


def test_other_tokens_are_compared_by_word():
    # One model cuts word 0 in two and has lost word 2, the other reads three words.
    a, b = explained([0.2, 0.2, 0.3], words=[0, 0, 1]), explained([0.5, 0.1, 0.9], words=[0, 1, 2])
    with pytest.raises(InputError, match="level=word"):
        value("agreement", a, b)
    with pytest.raises(InputError, match="level=word"):
        value("jaccard", a, b)
    assert value("agreement", a, b, level="word") == 1.0
    assert value("jaccard", a, b, level="word") == 1.0


def test_other_texts_are_refused():
    with pytest.raises(InputError, match="the same text"):
        value("agreement", explained([1, 2]), explained([1, 2], text="x y"))


def test_absolute_values_on_request():
    a, b = explained([-3, 1, 2]), explained([3, 1, 2])
    assert value("agreement", a, b) < 0
    assert value("agreement", a, b, abs=True) == 1.0
    assert value("jaccard", a, b) == 0.0
    assert value("jaccard", a, b, abs=True) == 1.0


def test_what_is_registered():
    for name in ("agreement", "jaccard"):
        assert metrics[name].kind == "agreement"
        assert metrics[name].needs == {"pair"}
        assert not metrics[name].asks
    assert metrics["agreement"].bounds == (-1, 1)
    assert metrics["jaccard"].bounds == (0, 1)
