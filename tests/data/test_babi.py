"""Our bAbI against its definition, by a second reader of the stories, and against the published figures."""

from __future__ import annotations

from collections import Counter
from statistics import mean

import pytest

from veridical.data import load_data
from veridical.data.babi import PLACES, RECENT
from veridical.records import Example

# Mean words of a text, and share of its words that are supporting facts, over the published files.
PUBLISHED = {1: (37.2, 0.228), 2: (95.2, 0.172), 3: (302.4, 0.096)}


@pytest.fixture(scope="module", params=[1, 2, 3])
def task(request: pytest.FixtureRequest) -> tuple[int, tuple[Example, ...]]:
    return request.param, load_data(f"babi/{request.param}:size=1500").splits["train"]


def sentences(ex: Example) -> list[list[str]]:
    return [sentence.split() for sentence in ex.text.removesuffix(" .").split(" . ")]


def marked(ex: Example) -> list[int]:
    """The numbers of the sentences the rationale covers, each covered whole."""
    starts = [0]
    for sentence in ex.text.removesuffix(" .").split(" . "):
        starts.append(starts[-1] + len(sentence) + len(" . "))
    found = [starts.index(start) for start, _ in ex.rationale]
    assert all(ex.text[start:end].endswith(" .") for start, end in ex.rationale)
    return found


def answer(ex: Example) -> str:
    """The answer by reading the whole story, knowing nothing of how it was made."""
    at: dict[str, str] = {}
    holder: dict[str, str | None] = {}
    seen: dict[str, list[str]] = {thing: [] for thing in ("apple", "football", "milk")}
    for words in sentences(ex):
        person = words[0]
        if "to" in words:
            at[person] = words[-1]
            for thing, by in holder.items():
                if by == person:
                    seen[thing].append(at[person])
        else:
            thing = next(word for word in words if word in seen)
            took = words[1] in ("got", "took", "grabbed", "picked")
            assert holder.get(thing) == (None if took else person)
            holder[thing] = person if took else None
            if person in at:
                seen[thing].append(at[person])
    asked = (ex.context or "").split()
    if asked[1] == "was":
        places = seen[asked[3]]
        last = len(places) - 1 - places[::-1].index(asked[-2])
        return next(place for place in reversed(places[:last]) if place != asked[-2])
    return at[asked[2]] if asked[2] in at else seen[asked[3]][-1]


def test_the_answer_follows_from_the_story(task) -> None:
    for ex in task[1]:
        assert PLACES[ex.label] == answer(ex)


def test_supporting_facts_are_as_many_as_the_task_has_and_alone_give_the_answer(task) -> None:
    number, examples = task
    for ex in examples:
        facts = marked(ex)
        assert len(facts) == number
        told = sentences(ex)
        last_move = [n for n in facts if "to" in told[n]][-1]
        if number < 3:
            assert told[last_move][-1] == PLACES[ex.label]
        else:
            moves = [told[n][-1] for n in facts if "to" in told[n]]
            assert moves == [PLACES[ex.label], (ex.context or "").split()[-2]]


def test_questions_come_after_every_second_statement_about_something_recent(task) -> None:
    number, examples = task
    for ex in examples:
        told = sentences(ex)
        assert len(told) % 2 == 0
        event = [n for n in marked(ex) if number == 1 or "to" not in told[n]][-1]
        assert len(told) - event <= RECENT


def test_lengths_and_shares_are_those_of_the_published_tasks(task) -> None:
    number, examples = task
    words, share = PUBLISHED[number]
    spread = {1: 0.01, 2: 0.06, 3: 0.12}[number]  # 300 stories of very different lengths
    assert mean(len(ex.text.split()) for ex in examples) == pytest.approx(words, rel=spread)
    covered = [sum(len(ex.text[s:e].split()) for s, e in ex.rationale) / len(ex.text.split()) for ex in examples]
    assert mean(covered) == pytest.approx(share, rel=spread)
    labels = Counter(ex.label for ex in examples)
    assert all(labels[n] == pytest.approx(len(examples) / 6, rel=0.25) for n in range(6))


def test_forms_of_sentences() -> None:
    ex = load_data("babi/1:size=100").splits["train"][0]
    assert len(sentences(ex)) == 2
    assert ex.context is not None
    assert ex.context.startswith("Where is ")
    assert ex.context.endswith(" ?")
