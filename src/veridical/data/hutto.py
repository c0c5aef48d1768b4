"""Human sentiment ratings of four kinds of sentences (Hutto and Gilbert, ICWSM 2014), as binary sentiment."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Annotated

from veridical.core import assets
from veridical.core.ranges import between
from veridical.core.records import Dataset, Example
from veridical.data import dataset
from veridical.data.split import side

CORPORA = {
    "movies": ("movieReviewSnippets_GroundTruth.txt", "sentences of movie reviews"),
    "amazon": ("amazonReviewSnippets_GroundTruth.txt", "sentences of Amazon product reviews"),
    "tweets": ("tweets_GroundTruth.txt", "tweets"),
    "nyt": ("nytEditorialSnippets_GroundTruth.txt", "sentences of newspaper editorials"),
}
LABELS = ("negative", "positive")


def parse(corpus: str, text: str, neutral: float) -> tuple[dict[str, tuple[Example, ...]], int]:
    """Splits of one corpus file (id, mean rating, sentence, tab-separated) and how many were near neutral."""
    splits: dict[str, list[Example]] = {"train": [], "dev": [], "test": []}
    dropped = 0
    for line in text.splitlines():
        number, rating, sentence = line.split("\t")
        if abs(float(rating)) < neutral or float(rating) == 0:
            dropped += 1
            continue
        sentence = " ".join(unescape(sentence).split())
        example = Example(f"{corpus}-{number}", sentence, int(float(rating) > 0))
        splits[side(sentence, "hutto")].append(example)  # one salt for all four corpora
    return {split: tuple(examples) for split, examples in splits.items()}, dropped


def unescape(text: str) -> str:
    """HTML entities as characters. Some were escaped twice; without its semicolon none is meant."""
    for _ in range(2):
        text = re.sub(r"&#?\w+;", lambda entity: html.unescape(entity[0]), text)
    return text


def _reader(corpus: str) -> Callable[..., Dataset]:
    file, kind = CORPORA[corpus]

    def read(*, neutral: Annotated[float, between(0, 4, without="high")] = 0.5) -> Dataset:
        # The files are UTF-8 (three of them ASCII but for three characters); their hash is pinned.
        text = (assets.fetch("vader") / file).read_text("utf-8-sig")
        splits, dropped = parse(corpus, text, neutral)
        about = (
            f"{kind[0].upper()}{kind[1:]} rated from -4 to 4 by 15 or more people (Hutto and Gilbert, 2014; "
            f"from vaderSentiment 3.3.2, MIT). The sign of the mean rating is the label; {dropped} with a "
            f"rating under {neutral:g} in size were left out. Splits 80/10/10 by normalised text, so that "
            f"near-duplicates stay on one side."
        )
        return Dataset(f"hutto/{corpus}", LABELS, splits, about=about)

    return read


for _corpus, (_, _kind) in CORPORA.items():
    dataset(f"hutto/{_corpus}", about=f"{_kind}, human sentiment ratings made binary", needs="index")(_reader(_corpus))
