"""The published bAbI files (qa1_single-supporting-fact_train.txt, ...): statements and questions line by line, numbered
anew with every story:

    1 Mary moved to the bathroom.
    2 John went to the hallway.
    3 Where is Mary?<tab>bathroom<tab>1
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from veridical.core.errors import InputError

# what was told, the question, its answer, numbers of the supporting facts
Asked = tuple[str, str, str, tuple[int, ...]]

DEV = 0.15  # of the stories of train, the last ones, where there is no file of their own: 1,500 of 10,000 questions


def read_stories(task: int, folder: str | Path) -> dict[str, list[Asked]]:
    """The questions of every split, in the files' order."""
    told = {split: _questions(path) for split, path in _files(task, Path(folder)).items()}
    splits = {split: [asked for story in stories for asked in story] for split, stories in told.items()}
    if "dev" not in told:
        kept = len(told["train"]) - max(1, round(DEV * len(told["train"])))
        for split, stories in (("train", told["train"][:kept]), ("dev", told["train"][kept:])):
            splits[split] = [asked for story in stories for asked in story]
    return {split: splits[split] for split in ("train", "dev", "test")}


def _files(task: int, folder: Path) -> dict[str, Path]:
    files = {}
    for split, called in (("train", "train"), ("dev", "valid"), ("test", "test")):
        paths = sorted(folder.glob(f"qa{task}_*{called}.txt"))
        if len(paths) == 1:
            files[split] = paths[0]
        elif paths or split != "dev":
            count = "no file" if not paths else f"{len(paths)} files"
            raise InputError(
                f"{folder} has {count} qa{task}_*{called}.txt; give the folder of one published set, such as en-10k."
            )
    return files


def _questions(path: Path) -> list[list[Asked]]:
    """Per story, its questions."""
    stories: list[list[Asked]] = []
    told: dict[int, str] = {}  # statement by the number of its line
    for number, (place, line) in enumerate(_lines(path), 1):
        if place == 1:
            stories.append([])
            told = {}
        sentence, *answer = line.split("\t")
        if not answer:
            told[place] = _spaced(sentence, ".")
            continue
        order = list(told)
        facts = [order.index(int(fact)) for fact in answer[-1].split() if fact.isdigit() and int(fact) in told]
        if len(answer) != 2 or not facts or not stories:
            raise InputError(
                f"{path}, line {number}: a question has an answer and its facts behind tabs, not {line!r}."
            )
        stories[-1].append((" ".join(told.values()), _spaced(sentence, "?"), answer[0], tuple(sorted(facts))))
    if not any(stories):
        raise InputError(f"{path} holds no question; give a published file as it is.")
    return stories


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} cannot be read ({problem}); give a published file as it is.") from problem
    for number, line in enumerate(text.splitlines(), 1):
        place, _, statement = line.partition(" ")
        if not place.isdigit() or not statement:
            raise InputError(f"{path}, line {number} begins with {line[:20]!r}, not with its number in the story.")
        yield int(place), statement


def _spaced(sentence: str, mark: str) -> str:
    """`Where is Mary?` -> `Where is Mary ?`"""
    return f"{sentence.strip().removesuffix(mark).strip()} {mark}"
