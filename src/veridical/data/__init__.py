"""Labelled texts by name: registered datasets, files and folders, and the hub.

One dataset or source is one file of this folder; its keyword-only arguments are its options. `load_data` is
the only door: `hutto/movies:neutral=0.3`, `hub:owner/name:config@revision`, `reviews.csv`, `folder/`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from veridical.core.assets import ASSETS
from veridical.core.errors import InputError
from veridical.core.kinds import as_annotated
from veridical.core.options import Count
from veridical.core.place import at_home
from veridical.core.ranges import Seed
from veridical.core.readable import insist_on_characters, shown
from veridical.core.records import Dataset, Given
from veridical.core.registry import Choice, Registry
from veridical.core.spec import Spec
from veridical.core.statistics import mean
from veridical.core.text import words_of
from veridical.data.sound import insist_on_dataset
from veridical.data.split import sample

Needs = Literal["index", "hub", "path"] | None


@dataclass(frozen=True)
class Source:
    """A function that returns a Dataset, and what it takes to run it."""

    name: str
    run: Callable[..., Dataset]
    about: str
    needs: Needs  # None: nothing; a package index or the hub the first time; files of the user's own
    labels: tuple[str, ...] = ()  # its classes, where they are known before it is read


PATHS = ("path", "folder")  # options of sources that read files
datasets: Registry[Source] = Registry("dataset", "veridical.data", "dataset")


def dataset(
    name: str, *, about: str, needs: Needs = None, labels: tuple[str, ...] = ()
) -> Callable[[Callable[..., Dataset]], Callable[..., Dataset]]:
    """Registers the decorated function under a name. Its keyword-only arguments become options."""

    def register(run: Callable[..., Dataset]) -> Callable[..., Dataset]:
        datasets.add(Source(name, run, about, needs, labels))
        return run

    return register


@as_annotated
def load_data(
    spec: Given | Path,
    *,
    limit: Count | None = None,
    seed: Seed = 0,
    splits: Iterable[str] = (),
    **options: Any,
) -> Dataset:
    """Load labelled texts: a dataset by its name, a file, a folder, or an object of your own.

    Args:
        spec: A name that `veridical data list` shows, `hub:owner/name`, a file, a folder, or an object: a DataFrame, a
            `datasets.Dataset`, dicts, examples. Options follow colons: `"planted:rule=order:copies=2"`.
        limit: At most so many examples of every split: a seeded sample with the split's own label shares, in the
            split's own order.
        seed: The seed of that sample alone; how generated data is drawn is that dataset's own option `seed`.
        splits: The splits that are wanted; the others are left out, and a missing one is an error. Default: all.
        **options: The source's own options as keywords: `text="review"` names a column of a file or an object.

    Returns:
        Examples by split, with the names of their classes.

    Example:
        >>> data = veridical.load_data("hutto/movies", limit=200)
        >>> data.splits["test"][0].text
    """
    data = _opened(spec, options)
    wanted = tuple(splits) or tuple(data.splits)
    for split in wanted:
        if split not in data.splits:
            called = spec if isinstance(spec, str) else data.name
            raise InputError(f"{shown(called)} has no split {shown(split)}; it has: {', '.join(data.splits)}.")
    kept = {split: data.splits[split] for split in wanted}
    if limit is not None:
        kept = {split: sample(examples, limit, seed) for split, examples in kept.items()}
    return replace(data, splits=kept)


def load_texts(spec: Given | Path, **how: Any) -> Dataset:
    """`load_data` for who reads texts alone: files of the user's own may lack labels, as objects may."""
    is_path = isinstance(spec, (str, Path)) and resolve(str(spec)).entry.name == "files"
    if is_path:
        how["unlabelled"] = True
    return load_data(spec, **how)


def _opened(spec: Given | Path, options: Mapping[str, Any]) -> Dataset:
    if isinstance(spec, Dataset):
        if options:
            raise InputError(f"A Dataset is read already, so {', '.join(options)} cannot be set; leave it out.")
        return insist_on_dataset(spec, "The data")
    if not isinstance(spec, (str, Path)):
        from veridical.data.objects import dataset_of

        return dataset_of(spec, **options)
    choice = resolve(str(spec), **options)
    given = {name: at_home(value) if name in PATHS and value else value for name, value in choice.options.items()}
    data = insist_on_dataset(choice.entry.run(**given), f"What the dataset {choice.label!r} returns")
    named = choice.entry.name in ("files", "hub")  # those two name their datasets after what they read
    return data if named else replace(data, name=choice.label)


def resolve(text: str, /, **options: Any) -> Choice[Source]:
    """What a spec means: `hub:`, a file with an ending, a registered name, then any file or folder that exists."""
    insist_on_characters(text, "The name of the data")
    text = at_home(text)
    spec = Spec.read(text)
    name, place = spec.head
    if name == "hub":
        return datasets.choose(Spec("hub", spec.options), **_place_on_hub(text, place), **options)
    if Path(text).suffix and os.path.isfile(text):  # no name of ours ends so: the other sources need not be read
        return datasets.choose("files", path=text, **options)
    if name in datasets:
        return datasets.choose(spec, **options)
    if os.path.exists(text):  # a path may hold what looks like options
        return datasets.choose("files", path=text, **options)
    if os.path.exists(spec.name):
        return datasets.choose(Spec("files", spec.options), path=spec.name, **options)
    near = get_close_matches(name, [source.name for source in datasets], n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise InputError(
        f"There is no dataset {shown(name)}, and no file or folder of that name exists.{hint} "
        f"Give a name that `veridical data list` shows, hub:owner/name, a file, or a folder with "
        f"train/dev/test files."
    )


def insist_on_name(spec: Given | Path) -> None:
    """Refuse a name, a path or an option of data that there is not; into files and objects it does not look."""
    if isinstance(spec, (str, Path)):
        resolve(str(spec))


def insist_on_names(specs: Iterable[Given | Path]) -> None:
    for spec in specs:
        insist_on_name(spec)


def insist_on_fetchable(names: Iterable[str]) -> None:
    """The same of what is to be fetched, before any of it is: assets have names too."""
    insist_on_names(name for name in names if name not in ASSETS)


def _place_on_hub(text: str, place: str) -> dict[str, str | None]:
    match = re.fullmatch(r"(?P<repo>[^:@=]+)(:(?P<config>[^:@=]+))?(@(?P<revision>[^:]+))?", place)
    if not match:
        raise InputError(f"{shown(text)} cannot be read; write hub:owner/name[:config][@revision][:option=value].")
    return match.groupdict()


def describe(data: Dataset) -> dict[str, Any]:
    """What `veridical data show` prints: per split its size, labels, lengths and rationales."""
    splits = {}
    for split, examples in data.splits.items():
        counts = Counter(index for ex in examples for index in _indices(ex.label))
        marked = [ex for ex in examples if ex.rationale]
        shares = [_marked_share(ex.text, ex.rationale) for ex in marked]
        splits[split] = {
            "n": len(examples),
            "labels": {label: counts[index] for index, label in enumerate(data.labels)},
            "mean_words": mean(len(ex.text.split()) for ex in examples),
            "with_context": sum(ex.context is not None for ex in examples),
            "with_rationale": len(marked) / len(examples) if examples else 0.0,
            "mean_rationale_share": mean(shares),  # of the words, over the texts that have a rationale
        }
    return {
        "name": data.name,
        "labels": list(data.labels),
        "multilabel": data.multilabel,
        "about": data.about,
        "splits": splits,
    }


def _indices(label: int | tuple[int, ...] | None) -> tuple[int, ...]:
    return () if label is None else label if isinstance(label, tuple) else (label,)


def _marked_share(text: str, spans: Iterable[tuple[int, int]]) -> float:
    words, spans = words_of(text), list(spans)
    return sum(any(s < end and start < e for s, e in spans) for start, end in words) / len(words)
