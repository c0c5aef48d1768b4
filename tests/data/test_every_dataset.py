"""What holds for every dataset that can be made here: a new file gets these tests for free."""

from __future__ import annotations

import pytest

from veridical.core.registry import options_of
from veridical.data import datasets, load_data
from veridical.data.split import normalised

FREE = [source for source in datasets if source.needs is None]


@pytest.mark.parametrize("name", [source.name for source in FREE])
def test_a_dataset_that_needs_nothing_keeps_the_contract(name: str) -> None:
    spec = f"{name}:size=300"
    data = load_data(spec)
    everything = [ex for some in data.splits.values() for ex in some]
    assert set(data.splits) == {"train", "dev", "test"}
    assert len({ex.id for ex in everything}) == len(everything)
    for ex in everything:
        assert ex.text.strip() == ex.text != ""
        assert isinstance(ex.label, int)
        assert 0 <= ex.label < len(data.labels)
        assert all(0 <= start < end <= len(ex.text) for start, end in ex.rationale)
        assert list(ex.rationale) == sorted(ex.rationale)
    texts = [{normalised(ex.text) for ex in some} for some in data.splits.values()]
    assert sum(map(len, texts)) == len(set().union(*texts))
    assert {ex.label for ex in data.splits["train"]} == set(range(len(data.labels)))
    assert data == load_data(spec)
    assert data.splits != load_data(f"{spec}:seed=1").splits


@pytest.mark.parametrize("name", [source.name for source in FREE])
def test_a_larger_dataset_has_the_same_test_texts_first(name: str) -> None:
    small, large = (load_data(f"{name}:size={size}").splits["test"] for size in (100, 200))
    if name.startswith("babi"):
        assert large[: len(small)] == small
    assert len(large) == 2 * len(small)


def test_options_have_types_and_defaults() -> None:
    for source in datasets:
        for option in options_of(source.run).values():
            assert option.annotation is not option.empty, (source.name, option.name)
            # Only what nobody can guess is asked for.
            assert option.default is not option.empty or option.name in ("path", "repo")
