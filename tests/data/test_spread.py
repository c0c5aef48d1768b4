from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from veridical.core.records import Example
from veridical.data.split import spread


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(0, 5))
def test_the_first_texts_have_every_label_with_its_share(labels, seed):
    examples = [Example(f"e{i}", f"text {i}", label) for i, label in enumerate(labels)]
    ordered = spread(examples, seed)
    assert sorted(e.id for e in ordered) == sorted(e.id for e in examples)
    total = Counter(labels)
    for n in range(1, len(ordered) + 1):
        for label, count in Counter(e.label for e in ordered[:n]).items():
            assert abs(count - n * total[label] / len(labels)) <= len(total)
    assert spread(examples[::-1], seed) == ordered
