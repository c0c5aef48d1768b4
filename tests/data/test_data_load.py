"""What a spec means, what `limit` keeps, what `describe` says."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical.core.errors import InputError
from veridical.core.records import Dataset, Example
from veridical.data import datasets, describe, load_data, resolve
from veridical.data.split import carve_dev, fold, normalised, sample, side


def examples(labels: list[int]) -> list[Example]:
    return [Example(f"e{n}", f"text {n}", label) for n, label in enumerate(labels)]


def test_names_take_options_and_give_the_dataset_its_name() -> None:
    choice = resolve("hutto/movies:neutral=0.25")
    assert (choice.entry.name, choice.options) == ("hutto/movies", {"neutral": 0.25})
    assert load_data("planted:copies=2:size=20:rule=single").name == "planted:copies=2:size=20"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("hub:owner/name", ("owner/name", None, None)),
        ("hub:owner/name:config", ("owner/name", "config", None)),
        ("hub:owner/name@refs/convert/parquet", ("owner/name", None, "refs/convert/parquet")),
        ("hub:owner/name:2.0@main:text=body", ("owner/name", "2.0", "main")),
    ],
)
def test_hub_specs(spec: str, expected: tuple) -> None:
    options = resolve(spec).options
    assert (options["repo"], options["config"], options["revision"]) == expected
    assert options["text"] == ("body" if "body" in spec else None)


def test_a_path_may_hold_colons_and_take_options(tmp_path: Path) -> None:
    path = tmp_path / "a:b" / "reviews:2024.csv"
    path.parent.mkdir()
    path.write_text("body,label\ngood,1\nbad,0\n" * 10, encoding="utf-8")
    choice = resolve(f"{path}:text=body")
    assert (choice.entry.name, choice.options["path"], choice.options["text"]) == ("files", str(path), "body")
    odd = path.rename(path.with_name("x:text=body.csv"))  # a name like a spec: the file that exists is meant
    assert resolve(str(odd)).options["path"] == str(odd)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("huto/movies", r"no dataset 'huto/movies', and no file or folder.*Did you mean 'hutto/movies'"),
        ("no/such/file.csv", r"no file or folder of that name exists.*data list"),
        ("hub:", r"write hub:owner/name"),
        ("hub:a/b:c:d", r"write hub:owner/name"),
        ("hub:a/b:colour=red", r"The dataset 'hub' has no option 'colour'"),
        ("planted:size", r"'size' in 'planted:size' is not option=value"),
        ("planted:sise=3", r"'sise'.*Did you mean 'size'"),
        ("planted:size=3", r"'size' of dataset 'planted' is 3.*from 10"),
        ("planted:rule=order:copies=3:length=5", r"'length'.*is 5.*at least 6"),
        ("babi/1:size=1", r"'size' of dataset 'babi/1' is 1"),
        ("hutto/movies:neutral=9", r"'neutral' of dataset 'hutto/movies' is 9; it must be at least 0 and below 4"),
    ],
)
def test_specs_that_mean_nothing(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_data(spec)


def test_splits_and_limits_that_cannot_be() -> None:
    with pytest.raises(InputError, match="has no split 'validation'; it has: train, dev, test"):
        load_data("planted:size=20", splits=["validation"])
    with pytest.raises(InputError, match="limit is 0"):
        load_data("planted:size=20", limit=0)
    assert list(load_data("planted:size=20", splits=["test"]).splits) == ["test"]


def test_limit_cuts_every_split_by_seed() -> None:
    whole, cut = load_data("planted:size=100"), load_data("planted:size=100", limit=10)
    assert {split: len(some) for split, some in cut.splits.items()} == {"train": 10, "dev": 10, "test": 10}
    order = [ex.id for ex in whole.splits["train"] if ex in cut.splits["train"]]
    assert [ex.id for ex in cut.splits["train"]] == order
    assert cut == load_data("planted:size=100", limit=10)
    assert cut != load_data("planted:size=100", limit=10, seed=1)


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 60), st.integers(0, 5))
def test_a_sample_keeps_shares_and_order(labels: list[int], limit: int, seed: int) -> None:
    whole = examples(labels)
    kept = sample(whole, limit, seed)
    assert len(kept) == min(limit, len(whole))
    assert [ex for ex in whole if ex in kept] == list(kept)
    have, had = Counter(ex.label for ex in kept), Counter(labels)
    assert all(abs(have[label] - len(kept) * had[label] / len(whole)) < 1 for label in had)


@settings(deadline=None)
@given(st.lists(st.text("ab !", min_size=1), min_size=2, max_size=30), st.floats(0.05, 0.9))
def test_dev_is_carved_by_normalised_text(texts: list[str], share: float) -> None:
    train = [Example(str(n), text, 0) for n, text in enumerate(texts)]
    kept, dev = carve_dev(train, share)
    assert sorted((*kept, *dev), key=lambda ex: int(ex.id)) == train
    assert not {normalised(ex.text) for ex in kept} & {normalised(ex.text) for ex in dev}
    assert bool(dev) == (len({normalised(text) for text in texts}) > 1)


def test_near_duplicates_share_a_side_and_sides_have_their_shares() -> None:
    assert normalised("It&#39;s  GREAT!!") == normalised("it's great")
    assert normalised("!") != normalised("?")
    assert fold("It's great", "x") == fold("ITS GREAT.", "x")
    assert fold("It's great", "x") != fold("It's great", "y")
    counts = Counter(side(f"sentence {n}", "x") for n in range(4000))
    assert counts["train"] == pytest.approx(3200, abs=100)
    assert counts["dev"] == pytest.approx(400, abs=80)


def test_describe_counts_what_there_is() -> None:
    marked = Example("a", "one two three four", 1, "why?", ((4, 13),))
    data = Dataset("d", ("no", "yes"), {"test": (marked, Example("b", "five six", 0))}, about="made up")
    assert describe(data) == {
        "name": "d",
        "labels": ["no", "yes"],
        "multilabel": False,
        "about": "made up",
        "splits": {
            "test": {
                "n": 2,
                "labels": {"no": 1, "yes": 1},
                "mean_words": 3.0,
                "with_context": 1,
                "with_rationale": 0.5,
                "mean_rationale_share": 0.5,
            }
        },
    }


def test_importing_and_listing_is_light() -> None:
    heavy = "{'torch', 'transformers', 'datasets', 'pyarrow', 'pandas'}"
    code = f"import sys, veridical.data as d; list(d.datasets); print(*({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_every_source_says_what_it_is_and_needs() -> None:
    sources = list(datasets)
    assert {"hutto/movies", "babi/3", "planted", "sst", "snli", "mimic/anemia"} <= {s.name for s in sources}
    for source in sources:
        assert source.about
        assert not source.about.endswith(".")
        assert source.needs in (None, "index", "hub", "path")
