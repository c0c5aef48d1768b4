"""The CheckList attack: what it changes, how it searches, what it counts."""

from __future__ import annotations

import csv
import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tiny import tiny
from veridical.cli.app import app
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.core.seed import generator
from veridical.model.ask import predict
from veridical.model.classifier import Classifier
from veridical.probes import checklist
from veridical.probes.attack import Attack, Attacked, attack, to_csv, to_rows, to_text
from veridical.probes.checklist import CITIES, COUNTRIES, FIRST, LAST, Place, finder_of, places, rewrite
from veridical.probes.checklist_recipe import recipes_places, spelled
from veridical.probes.options import CHANGES

TEXTS = (
    "The film was not bad, it's good and I can't say more.",
    "John and Mary loved it. John loved it more than 12 books.",
    "Paris is very boring but the end was not the end of it.",
    "wow",
    "It was not good, it is not a film that the Germany of 1946 came to love in two acts.",
    "a great story",
)


def found(text: str, *changes: str, alternatives: int = 5, entities: str = "lists") -> list[Place]:
    finder, _ = finder_of(entities)
    return places(text, changes or CHANGES, finder, alternatives=alternatives, random=generator("test"))  # type: ignore[arg-type]


def results(text: str, *changes: str) -> set[str]:
    """What single changes make of a text."""
    return {rewrite(text, [(place, new)]) for place in found(text, *changes) for new in place.options}


# -- changes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("It isn't bad.", "It is not bad."),
        ("I can't wait", "I cannot wait"),
        ("They won't come", "They will not come"),
        ("I'm glad", "I am glad"),
        ("It's a film", "It is a film"),
        ("you've seen it", "you have seen it"),
        ("IT WASN'T GOOD", "IT WAS NOT GOOD"),
    ],
)
def test_contractions_both_ways(short, long):
    assert results(short, "extend") == {long}
    assert short in results(long, "contract")  # "it is not" has two: isn't, it's not


@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("it does n't work", "it does not work"),  # as treebanks write it
        ("it ca n't work", "it cannot work"),
        ("it doesn\u2019t work", "it does not work"),
        ("it 's good", "it is good"),
    ],
)
def test_contractions_as_corpora_write_them(text, long):
    assert results(text, "extend") == {long}


@pytest.mark.parametrize("text", ["it's been good", "the film's end", "an isnt", "cannon"])
def test_what_is_no_contraction_stays(text):
    assert results(text, "extend") == set()


def test_a_verb_at_the_end_is_not_contracted():
    assert results("That is what it is.", "contract") == {"That's what it is."}


def test_numbers_move_a_little():
    numbers = {int(text.split()[1]) for text in results("about 100 people", "number")}
    assert numbers
    assert all(80 <= n <= 120 and n != 100 for n in numbers)
    years = {int(text.split()[1]) for text in results("in 1946", "number")}
    assert all(1941 <= n <= 1951 for n in years)
    words = {text.split()[0] for text in results("Two films", "number")}
    assert words <= {w.capitalize() for w in "three four five six seven eight nine ten eleven twelve".split()}


@pytest.mark.parametrize(
    "text",
    [
        "8/10",
        "3 stars",
        "7 out of 10",
        "90% of it",
        "1.5",
        "on 3-4",
        "at 10:30",
        "the 1st",
        "$20",
        "two thumbs up",
        "one of us",
    ],
)
def test_ratings_amounts_and_dates_are_left_alone(text):
    assert results(text, "number") == set()


def test_a_name_changes_wherever_it_stands():
    for text in results("Mary met John. Mary left.", "name"):
        names = text.replace(".", "").split()
        assert names[0] == names[3]
        assert (names[0] == "Mary") is not (names[2] == "John")  # one of the two was changed
    changed = {text.split()[0] for text in results("Mary met nobody", "name")}
    assert len(changed) == 5
    assert changed <= set(FIRST) - {"Mary"}


def test_a_city_becomes_a_city_and_a_country_a_country():
    assert {t.removeprefix("in ") for t in results("in New York", "location")} <= set(CITIES) - {"New York"}
    assert {t.removeprefix("in ") for t in results("in France", "location")} <= set(COUNTRIES) - {"France"}


def test_the_lists_hold_each_name_once():
    for names in (FIRST, LAST, COUNTRIES, CITIES):
        assert len(set(names)) == len(names)
        assert all(name.strip() == name and name for name in names)
    assert not set(FIRST) & {*COUNTRIES, *CITIES}


@given(st.text(alphabet="ab isn't1Mary Paris", max_size=60), st.data())
@settings(deadline=None)
def test_a_rewritten_text_differs_only_where_it_was_changed(text, data):
    here = found(text)
    if not here:
        return
    place = data.draw(st.sampled_from(here))
    new = data.draw(st.sampled_from(place.options))
    out, end, parts = rewrite(text, [(place, new)]), 0, []
    for start, stop in sorted(place.spans):
        parts.append(text[end:start])
        end = stop
    parts.append(text[end:])
    assert out == new.join(parts)
    assert rewrite(text, []) == text


# -- who finds names ----------------------------------------------------------------------------------------


def test_without_spacy_the_lists_are_used_and_named(monkeypatch):
    monkeypatch.setattr(checklist, "find_spec", lambda name: None)
    assert finder_of("auto")[1] == "built-in lists"


def test_a_pipeline_that_is_not_there_is_said_so(monkeypatch):
    checklist._from_pipeline.cache_clear()

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(checklist, "import_module", missing)
    with pytest.raises(InputError, match="spaCy is not installed"):
        finder_of("en_core_web_sm")

    def load(name):
        raise OSError(name)

    monkeypatch.setattr(checklist, "import_module", lambda name: SimpleNamespace(load=load))
    with pytest.raises(InputError, match="no pipeline 'en_core_web_sm'"):
        finder_of("en_core_web_sm")
    blank = SimpleNamespace(pipe_names=["tagger"])
    monkeypatch.setattr(checklist, "import_module", lambda name: SimpleNamespace(load=lambda _: blank))
    with pytest.raises(InputError, match="finds no named entities"):
        finder_of("en_core_web_sm")


def test_a_pipeline_finds_names_that_no_list_has(monkeypatch):
    checklist._from_pipeline.cache_clear()

    class Pipeline:
        """Finds what it is told to."""

        pipe_names = ("ner",)

        def __call__(self, text):
            kinds = {"Marius Goring": "PERSON", "Ruritania": "GPE", "Monday": "DATE"}
            ents = [
                SimpleNamespace(label_=kind, start_char=text.index(name), end_char=text.index(name) + len(name))
                for name, kind in kinds.items()
                if name in text
            ]
            return SimpleNamespace(ents=ents)

    monkeypatch.setattr(checklist, "import_module", lambda name: SimpleNamespace(load=lambda _: Pipeline()))
    here = found("Marius Goring left Ruritania on Monday", "name", "location", entities="some_pipeline")
    assert [place.change for place in here] == ["name", "location"]
    for new in here[0].options:
        first, last = new.split()
        assert first in FIRST
        assert last in LAST
    assert finder_of("some_pipeline")[1] == "spaCy pipeline some_pipeline"
    checklist._from_pipeline.cache_clear()


# -- the search ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clf() -> Classifier:
    """A model that is nearly undecided about the second text."""
    model, tokenizer = tiny("bert", num_labels=2)
    clf = Classifier(model, tokenizer)
    logits = predict(clf, clf.encode([Example("x", TEXTS[1])])).logits[0]
    with torch.no_grad():
        model.classifier.bias += torch.tensor([0.0, logits[0] - logits[1] + 0.02])
    return clf


@pytest.fixture(scope="module")
def examples(clf) -> list[Example]:
    """Labelled as the model predicts, but for the last, which it gets wrong."""
    plain = [Example(str(i), text) for i, text in enumerate(TEXTS)]
    classes = predict(clf, clf.encode(plain)).logits.argmax(-1)
    wrong = len(TEXTS) - 1
    return [Example(e.id, e.text, int(k) ^ (i == wrong)) for i, (e, k) in enumerate(zip(plain, classes, strict=True))]


def by_hand(clf: Classifier, example: Example, seed: int) -> tuple[str, str, int]:
    """The same search, one text at a time: outcome, final text, texts asked about."""
    asked: dict[str, np.ndarray] = {}

    def probabilities(text: str) -> np.ndarray:
        if text not in asked:
            asked[text] = predict(clf, clf.encode([Example("x", text)])).probabilities[0]
        return asked[text]

    if probabilities(example.text).argmax() != example.label:
        return "skipped", example.text, 1
    here = places(
        example.text, CHANGES, finder_of("lists")[0], alternatives=5, random=generator("attack", seed, example.id)
    )
    edits: list[tuple[Place, str]] = []
    while here:
        options = [(place, new) for place in here for new in place.options]
        answers = [probabilities(rewrite(example.text, [*edits, one])) for one in options]
        flips = [i for i, p in enumerate(answers) if p.argmax() != example.label]
        best = min(flips or range(len(options)), key=lambda i: answers[i][example.label])
        edits.append(options[best])
        if flips:
            return "success", rewrite(example.text, edits), len(asked)
        here = [place for place in here if not place.meets(options[best][0])]
    return "failed", rewrite(example.text, edits), len(asked)


def test_the_search_is_greedy_and_counts_its_questions(clf, examples):
    made = attack(clf, examples, entities="lists", seed=3)
    assert [one.example for one in made.results] == examples
    seen = set()
    for one in made.results:
        outcome, text, _ = by_hand(clf, one.example, 3)
        assert (one.outcome, one.text) == (outcome, text)
        seen.add(one.outcome)
        label = predict(clf, clf.encode([Example("x", one.text)])).logits[0].argmax()
        assert (int(label) == one.example.label) is (one.outcome == "failed")
    assert seen == {"success", "failed", "skipped"}
    # Texts that the tokenizer reads alike (two unknown words) are one question, so there are at most as many.
    assert all(1 <= one.queries <= by_hand(clf, one.example, 3)[2] for one in made.results)


def test_the_same_seed_gives_the_same_attack_whatever_the_batches(clf, examples):
    first = attack(clf, examples, entities="lists", seed=1)
    again = attack(clf, examples, entities="lists", seed=1, budget=16)
    assert [(a.outcome, a.text, a.queries) for a in first.results] == [
        (a.outcome, a.text, a.queries) for a in again.results
    ]
    alone = [attack(clf, [e], entities="lists", seed=1).results[0] for e in examples]
    assert [a.text for a in alone] == [a.text for a in first.results]
    other = attack(clf, examples, entities="lists", seed=2)
    assert [a.text for a in other.results] != [a.text for a in first.results]


def test_perturbed_words_are_those_of_the_text_as_it_was(clf, examples):
    for one in attack(clf, examples, entities="lists").results:
        assert one.words == len(one.example.text.split())
        assert (one.perturbed > 0) is bool(one.edits)
        assert one.perturbed <= one.words
        for _, before, after in one.edits:
            assert before in one.example.text
            assert after in one.text


def test_a_context_is_read_and_never_changed():
    model, tokenizer = tiny("bert", num_labels=2)
    clf = Classifier(model, tokenizer)
    example = Example("x", "It was not good", context="Where is John? It isn't here.")
    label = int(predict(clf, clf.encode([example])).logits[0].argmax())
    (one,) = attack(clf, [Example("x", example.text, label, context=example.context)], entities="lists").results
    assert one.places == 1
    assert one.example.context == example.context


def record(outcome: str, words: int = 10, perturbed: int = 0, queries: int = 1, n_places: int = 1) -> Attacked:
    example = Example("x", "text", 0)
    return Attacked(example, outcome, "text", (), words, perturbed, n_places, 0.9, 0.1, queries)  # type: ignore[arg-type]


def test_the_figures_are_those_of_the_paper():
    """Table 6: 400 texts, 93.0% right before and 12 successes are 90.0% under attack and a success rate of 3.23%."""
    rows = [record("success", words=10, perturbed=4, queries=7)] * 12
    rows += [record("failed", words=20, perturbed=9, queries=3)] * 359 + [record("failed", n_places=0)]
    rows += [record("skipped", queries=1)] * 28
    figures = Attack("m", tuple(rows), "built-in lists").summary
    assert (figures["texts"], figures["successes"], figures["failed"], figures["skipped"]) == (400, 12, 360, 28)
    assert figures["accuracy"] == pytest.approx(93.0)
    assert figures["accuracy_under_attack"] == pytest.approx(90.0)
    assert figures["success_rate"] == pytest.approx(3.23, abs=0.005)
    assert figures["perturbed_words"] == pytest.approx(40)  # of successes only
    assert figures["queries"] == pytest.approx((12 * 7 + 359 * 3 + 1) / 372)  # skipped texts were not attacked
    assert figures["words"] == pytest.approx((12 * 10 + 359 * 20 + 10 + 280) / 400)
    assert figures["nothing_to_change"] == 1


def test_without_a_right_prediction_there_is_no_rate():
    figures = Attack("m", (record("skipped"),), "built-in lists").summary
    assert (figures["success_rate"], figures["queries"], figures["perturbed_words"]) == (None, None, None)
    assert "none" in to_text({"m": Attack("m", (record("skipped"),), "built-in lists")})


def test_tables_and_rows(clf, examples):
    made = {"a": attack(clf, examples, entities="lists"), "b": attack(clf, examples[:2], entities="lists")}
    rows = list(csv.DictReader(io.StringIO(to_csv(made))))
    assert [row["model"] for row in rows] == ["a", "b"]
    assert [int(row["texts"]) for row in rows] == [6, 2]
    text = to_text(made)
    assert "attack success rate (%)" in text
    assert "Names and locations: built-in lists." in text
    assert [row["id"] for row in to_rows(made)] == [e.id for e in [*examples, *examples[:2]]]


def test_mistakes_are_named(clf, examples):
    with pytest.raises(InputError, match="Did you mean 'name'"):
        attack(clf, examples, changes=["nmae"])
    with pytest.raises(InputError, match=r"changes is \[\], so none is named"):
        attack(clf, examples, changes=[])
    with pytest.raises(InputError, match="no gold class"):
        attack(clf, [Example("x", "text")])
    with pytest.raises(InputError, match="no texts"):
        attack(clf, [])
    with pytest.raises(InputError, match="alternatives is 0"):
        attack(clf, examples, alternatives=0)
    model, tokenizer = tiny("bert", problem_type="multi_label_classification")
    with pytest.raises(InputError, match="several labels"):
        attack(Classifier(model, tokenizer), examples)


# -- the command line ---------------------------------------------------------------------------------------


def test_the_verb(clf, examples, tmp_path):
    clf.save(tmp_path / "model")
    store.write_jsonl(tmp_path / "data" / "test.jsonl", [{"text": e.text, "label": e.label} for e in examples])
    given = ["attack", str(tmp_path / "model"), "--data", str(tmp_path / "data"), "--entities", "lists"]
    shown = CliRunner().invoke(app, given)
    assert shown.exit_code == 0, shown.output
    assert "successful attacks" in shown.stdout
    out = tmp_path / "attacked.jsonl"
    made = CliRunner().invoke(app, [*given, "--json", "--out", str(out), "--change", "contract,extend"])
    assert made.exit_code == 0, made.output
    (figures,) = json.loads(made.stdout).values()
    assert figures["texts"] == len(examples)
    assert {edit[0] for row in store.read_jsonl(out) for edit in row["edits"]} <= {"contract", "extend"}
    table = CliRunner().invoke(app, [*given, "--format", "csv"])
    assert table.stdout.startswith("model,texts,successes")
    for wrong in (["--out", "x.csv"], ["--change", "nothing"], ["--entities", "no_such_pipeline"]):
        failed = CliRunner().invoke(app, [*given, *wrong])
        assert failed.exit_code == 2
        assert len(failed.stderr.strip().splitlines()) == 1, failed.stderr


# -- contractions in their surroundings ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "It's always been a classic.",
        "It's never really been better.",
        "He's just got worse.",
        "she's already become a star",
        "That\u2019s long since gone.",
        "it 's always been good",
    ],
)
def test_s_that_stands_for_has_is_not_extended_to_is(text):
    assert results(text, "extend") == set()


def test_s_that_stands_for_is_still_becomes_is():
    assert results("It's always good.", "extend") == {"It is always good."}
    assert results("He's really the best.", "extend") == {"He is really the best."}


@pytest.mark.parametrize(
    "text",
    [
        "All I have is time.",
        "They have a point.",
        "I have red shoes and they have need of a bed.",
        "All it is is a joke.",
        "better than it is now",
        "as bad as it is here",
        "all they are is loud",
    ],
)
def test_full_verbs_are_not_contracted(text):
    assert results(text, "contract") == set()


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("I have seen it.", "I've seen it."),
        ("the best I have ever seen", "the best I've ever seen"),
        ("we have always really loved it", "we've always really loved it"),
        ("They have been here", "They've been here"),
    ],
)
def test_have_before_a_participle_is_contracted(long, short):
    assert results(long, "contract") == {short}


# -- TextAttack's recipe --------------------------------------------------------------------------------------


def recipes(text: str, *changes: str, alternatives: int = 3) -> list[Place]:
    finder, _ = finder_of("lists")
    return recipes_places(text, changes, finder, alternatives=alternatives, random=generator("test"))  # type: ignore[arg-type]


def test_the_recipe_contracts_and_extends_whatever_stands_around():
    (place,) = recipes("All I have is time", "contract")
    assert rewrite("All I have is time", [(place, place.options[0])]) == "All I've is time"
    (place,) = recipes("It's always been", "extend")
    assert place.options == ("It is",)


def test_the_recipe_moves_numbers_up_to_twice_and_ratings_too():
    for text, number in (("about 100 people", 100), ("8/10", 8), ("in 1946", 1946), ("90% of it", 90)):
        place = recipes(text, "number")[0]
        assert text[slice(*place.spans[0])] == str(number)
        assert 1 <= len(place.options) <= 3
        assert all(1 <= int(option) <= 2 * number and int(option) != number for option in place.options)
    assert recipes("2 films, 4 times, 0 stars, two, four", "number") == []
    assert recipes("One film", "number")[0].options == ("Two",)
    assert max(int(o) for o in recipes("about 100", "number", alternatives=500)[0].options) > 150


def test_numbers_are_spelled():
    assert [spelled(n) for n in (1, 19, 20, 42, 99, 100, 180)] == [
        *("one", "nineteen", "twenty", "forty-two", "ninety-nine", "one hundred", "one hundred and eighty"),
    ]


def test_the_recipe_changes_names_word_by_word_and_each_for_itself():
    text = "Mary met John. Mary left."
    here = recipes(text, "name")
    assert [text[slice(*place.spans[0])] for place in here] == ["Mary", "John", "Mary"]
    assert all(len(place.spans) == 1 and len(place.options) == 3 for place in here)

    def finder(text):
        return [("name", (0, len("Marius van Goring")))]

    first, last = recipes_places("Marius van Goring left", ("name",), finder, alternatives=3, random=generator("test"))
    assert set(first.options) <= set(FIRST)
    assert set(last.options) <= set(LAST)
    assert (first.spans, last.spans) == (((0, 6),), ((11, 17),))


def test_the_recipe_leaves_places_of_several_words():
    assert [place.change for place in recipes("from New York to Paris", "location")] == ["location"]


def test_the_preset_takes_the_recipes_changes(clf, examples):
    made = attack(clf, examples, entities="lists", preset="textattack")
    ours = attack(clf, examples, entities="lists")
    second = [one.results[1].places for one in (made, ours)]  # John twice, Mary, 12
    assert second == [4, 3]
    assert made.results[1].text != ours.results[1].text
    with pytest.raises(InputError, match="textattack"):
        attack(clf, examples, preset="textfooler")
