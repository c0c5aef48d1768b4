"""bAbI tasks 1 to 3 (Weston et al., 2015) from a simulator of our own, with their supporting facts.

Four people walk between six places, take things and drop them. The rules below were fitted to the published
files: who acts and how, that a question may follow every second statement, and that it is about something
that happened in the last five.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from veridical.core.errors import InputError
from veridical.core.ranges import Seed, between
from veridical.core.records import Dataset, Example, Span
from veridical.core.seed import generator
from veridical.data import dataset
from veridical.data.babi_files import read_stories
from veridical.data.split import normalised

PEOPLE = ("Daniel", "John", "Mary", "Sandra")
PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
THINGS = ("apple", "football", "milk")
MOVED = ("journeyed to", "moved to", "travelled to", "went back to", "went to")
TOOK = ("got", "grabbed", "picked up", "took")
DROPPED = ("discarded", "dropped", "left", "put down")
QUESTIONS = 5  # of a story
RECENT = 5  # statements a question looks back on


@dataclass(frozen=True)
class Fact:
    """One statement: who did what to which place or thing."""

    action: str  # move, get, drop
    person: str
    what: str
    sentence: str


@dataclass
class World:
    """Where everybody and everything truly is, and what the story has told so far."""

    rng: np.random.Generator
    task: int
    at: dict[str, str] = field(init=False)
    lies: dict[str, str | None] = field(init=False)  # None: somebody holds it
    held: dict[str, set[str]] = field(init=False)
    story: list[Fact] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Where all begin is never told.
        self.at = {person: self.pick(PLACES) for person in PEOPLE}
        self.lies = {thing: self.pick(PLACES) for thing in THINGS}
        self.held = {person: set() for person in PEOPLE}

    def pick(self, options: tuple[str, ...]) -> str:
        return options[self.rng.integers(len(options))]

    def step(self) -> None:
        """One statement: a person and an action are drawn until the action is possible."""
        while True:
            person = self.pick(PEOPLE)
            action = "move" if self.task == 1 else self.pick(("move", "get", "drop"))
            if action == "move":
                place = self.pick(PLACES)
                if place != self.at[person]:
                    self.at[person] = place
                    return self.tell(action, person, place, f"{self.pick(MOVED)} the {place}")
            elif action == "get":
                here = tuple(thing for thing in THINGS if self.lies[thing] == self.at[person])
                if here:
                    thing = self.pick(here)
                    self.lies[thing] = None
                    self.held[person].add(thing)
                    # Task 2 always says "there" when something is taken.
                    return self.tell(action, person, thing, f"{self.pick(TOOK)} the {thing}", self.task == 2)
            elif self.held[person]:
                thing = self.pick(tuple(sorted(self.held[person])))
                self.held[person].remove(thing)
                self.lies[thing] = self.at[person]
                return self.tell(action, person, thing, f"{self.pick(DROPPED)} the {thing}")

    def tell(self, action: str, person: str, what: str, deed: str, there: bool = False) -> None:
        if action != "move" and (there or self.rng.random() < 0.2):
            deed += " there"
        self.story.append(Fact(action, person, what, f"{person} {deed} ."))


Question = tuple[str, str, tuple[int, ...]]  # question, answer, numbers of the supporting facts


def ask(world: World) -> Question | None:
    """A question about a statement drawn from the recent ones, if one of them allows it."""
    first = max(0, len(world.story) - RECENT)
    recent = [first + int(n) for n in world.rng.permutation(len(world.story) - first)]
    kind = {1: _where_is_person, 2: _where_is_thing, 3: _where_was_thing}[world.task]
    for number in recent:
        question = kind(world, world.story[number])
        if question:
            return question
    return None


def _where_is_person(world: World, about: Fact) -> Question:
    last = _numbers(world, lambda fact: fact.person == about.person)[-1]
    return f"Where is {about.person} ?", world.story[last].what, (last,)


def _where_is_thing(world: World, about: Fact) -> Question | None:
    """Carried somewhere since it was taken, or dropped by somebody whose place had been told."""
    if about.action == "move":
        return None
    event = _numbers(world, lambda fact: fact.what == about.what)[-1]
    person = world.story[event].person
    moves = _numbers(world, lambda fact: fact.action == "move" and fact.person == person)
    if world.story[event].action == "drop":
        moves = [number for number in moves if number < event]
    if not moves or (world.story[event].action == "get" and moves[-1] < event):
        return None
    facts = tuple(sorted((event, moves[-1])))
    return f"Where is the {about.what} ?", world.story[moves[-1]].what, facts


def _where_was_thing(world: World, about: Fact) -> Question | None:
    """Two places after each other to which it was carried in one go; of a place its last visit."""
    if about.action == "move":
        return None
    events = _numbers(world, lambda fact: fact.what == about.what)
    taken = events[-2] if world.story[events[-1]].action == "drop" else events[-1]
    end = events[-1] if taken != events[-1] else len(world.story)
    person = world.story[taken].person
    route = _numbers(world, lambda fact: fact.action == "move" and fact.person == person)
    route = [number for number in route if taken < number < end]
    if len(route) < 2:
        return None
    places = [world.story[number].what for number in route]
    stops = [stop for stop in range(1, len(route)) if places[stop] not in places[stop + 1 :]]
    stop = stops[world.rng.integers(len(stops))]
    facts = tuple(sorted((events[-1], route[stop - 1], route[stop])))
    return f"Where was the {about.what} before the {places[stop]} ?", places[stop - 1], facts


def _numbers(world: World, true_of: Callable[[Fact], bool]) -> list[int]:
    return [number for number, fact in enumerate(world.story) if true_of(fact)]


def tell_story(task: int, *seed: object) -> list[tuple[str, Question]]:
    """One story: what had been told at each of its questions, and the question."""
    world = World(generator("babi", task, *seed), task)
    asked: list[tuple[str, Question]] = []
    while len(asked) < QUESTIONS:
        world.step()
        world.step()
        question = ask(world)
        if question:
            asked.append((" ".join(fact.sentence for fact in world.story), question))
    return asked


def _generate(task: int, size: int, seed: int) -> Dataset:
    splits: dict[str, tuple[Example, ...]] = {}
    taken: set[str] = set()  # by the splits before: no text is in two
    for split, wanted in (("test", size // 10), ("dev", size // 10), ("train", size)):
        examples: list[Example] = []
        story = 0
        while len(examples) < wanted:
            asked = tell_story(task, seed, split, story)
            story += 1
            if any(normalised(text) in taken for text, _ in asked):
                continue
            examples += [_example(f"babi{task}-{split}-{len(examples) + n}", *pair) for n, pair in enumerate(asked)]
        splits[split] = tuple(examples[:wanted])
        taken |= {normalised(ex.text) for ex in splits[split]}
    about = (
        f"bAbI task {task} (Weston et al., 2015), generated here, seed {seed}: the story is the text, the "
        f"question the context, the place asked for the label, the supporting facts the rationale. No text "
        f"is in two splits."
    )
    ordered = {split: splits[split] for split in ("train", "dev", "test")}
    return Dataset(f"babi/{task}", PLACES, ordered, about=about)


def _published(task: int, path: str) -> Dataset:
    splits = {}
    for split, asked in read_stories(task, path).items():
        for _, question, answer, _ in asked:
            if answer not in PLACES:
                raise InputError(f"The answer to {question!r} is {answer!r}; in task {task} it is {', '.join(PLACES)}.")
        splits[split] = tuple(
            _example(f"babi{task}-{split}-{number}", text, (question, answer, facts))
            for number, (text, question, answer, facts) in enumerate(asked)
        )
    about = f"bAbI task {task} (Weston et al., 2015) as published: story, question, place, supporting facts."
    return Dataset(f"babi/{task}", PLACES, splits, about=about)


def _example(id: str, text: str, question: Question) -> Example:
    asked, answer, facts = question
    spans: list[Span] = []
    start = 0
    for sentence in text.split(" . "):
        end = min(start + len(sentence) + len(" ."), len(text))
        spans.append((start, end))
        start = end + 1
    return Example(id, text, PLACES.index(answer), asked, tuple(spans[number] for number in facts))


def _reader(task: int) -> Callable[..., Dataset]:
    def read(
        *, size: Annotated[int, between(10, 1_000_000)] = 10_000, seed: Seed = 0, path: str | None = None
    ) -> Dataset:
        """`size` training questions, a tenth as many for dev and for test; or the published ones, from their folder."""
        return _generate(task, size, seed) if path is None else _published(task, path)

    return read


for _task, _about in (
    (1, "where is a person? one supporting fact"),
    (2, "where is a thing? two supporting facts"),
    (3, "where was a thing before? three supporting facts"),
):
    dataset(f"babi/{_task}", about=f"{_about}; generated, or published files (path=)")(_reader(_task))
