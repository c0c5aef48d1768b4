"""Our bAbI against its definition, by a second reader of the stories, and against the published figures."""

from __future__ import annotations

from collections import Counter
from statistics import mean

import pytest

from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.data import load_data
from veridical.data.babi import PLACES, RECENT

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


# -- published files ----------------------------------------------------------------------------------------

STORY = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Daniel went back to the hallway.
5 Mary journeyed to the office.
6 Where is Mary? \toffice\t5
"""


def write(folder, **files: str):
    for name, text in files.items():
        (folder / f"qa1_single-supporting-fact_{name}.txt").write_text(text)
    return f"babi/1:path={folder}"


def test_published_files_are_read(tmp_path):
    data = load_data(write(tmp_path, train=STORY * 20, test=STORY))
    assert [len(data.splits[split]) for split in ("train", "dev", "test")] == [34, 6, 2]
    first, second = data.splits["test"]
    assert (first.text, first.context) == ("Mary moved to the bathroom . John went to the hallway .", "Where is Mary ?")
    assert [PLACES[ex.label] for ex in (first, second)] == ["bathroom", "office"]
    assert [first.text[slice(*span)] for span in first.rationale] == ["Mary moved to the bathroom ."]
    assert [second.text[slice(*span)] for span in second.rationale] == ["Mary journeyed to the office ."]
    own = load_data(write(tmp_path, train=STORY * 20, valid=STORY * 3, test=STORY))
    assert [len(own.splits[split]) for split in ("train", "dev", "test")] == [40, 6, 2]


@pytest.mark.parametrize(
    ("train", "said"),
    [
        ("Mary moved.\n", "line 1 begins with 'Mary moved.'"),
        (STORY.replace("\t1", ""), "line 3: a question has an answer and its facts"),
        (STORY.replace("office\t5", "moon\t5"), "is 'moon'; in task 1 it is bathroom"),
        ("1 Mary moved to the bathroom.\n", "holds no question"),
    ],
)
def test_what_is_no_published_file_is_refused(tmp_path, train, said):
    with pytest.raises(InputError, match=said):
        load_data(write(tmp_path, train=train, test=STORY))
    with pytest.raises(InputError, match="no file qa2_"):
        load_data(f"babi/2:path={tmp_path}")
