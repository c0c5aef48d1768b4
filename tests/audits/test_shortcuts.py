"""Words that a model relies on: what stands out by two permutations, what erasing does, and how it is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_audit import SCRIPT, fake

import veridical
from tiny import tiny
from veridical.audits.page import audit_page
from veridical.audits.shortcuts.corpus import Said, name_of, names_in, read
from veridical.audits.shortcuts.erasing import CONTROLS, before, erasures, marked_share, nearest
from veridical.audits.shortcuts.page import percent, section
from veridical.audits.shortcuts.record import Erasure, Flagged, Shortcuts, Taught, Together, WordRow
from veridical.audits.shortcuts.standing import Standing, standings
from veridical.audits.shortcuts.telling import told
from veridical.audits.sources import Sources, read_sources, write_sources
from veridical.core import stored
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.model.load import load

FILLER = tuple(f"w{number}" for number in range(30))


# -- words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Great!", "great"),
        ('"great"', "great"),
        ("don't", "don't"),
        ("(state-of-the-art),", "state-of-the-art"),
        ("!!!", "!!!"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("$5.00", "5.00"),
        ("été…", "été"),
        ("😍😍", "😍😍"),
    ],
)
def test_a_word_goes_by_its_letters(written: str, name: str) -> None:
    assert name_of(written) == name


def test_the_tokens_of_a_word_are_found_wherever_it_stands() -> None:
    clf = load(*tiny("bert"))
    (encoded,) = clf.encode([Example("a", "Good film , good , not bad !")])
    text = read(encoded)
    assert names_in(encoded.example.text) == ["good", "film", ",", "good", ",", "not", "bad", "!"]
    assert set(text.places) == {"good", "film", ",", "not", "bad", "!"}
    gone = text.tokens_of(["good", "absent"])
    assert [encoded.example.text[slice(*encoded.spans[place])].casefold() for place in gone] == ["good", "good"]


# -- what stands out ----------------------------------------------------------------------------------------


def corpus(
    rng: np.random.Generator, texts: int = 60, *, cue: float = 0.0, anywhere: float = 0.0, quiet: bool = False
) -> tuple[list[Said], list[int]]:
    """Texts of ten filler words. `cue` has so much of the explanation in texts of class 1 alone, `anywhere` in all;
    `quiet` goes with class 1 and has next to nothing."""
    said, labels = [], []
    for number in range(texts):
        label = number % 2
        words, scores = list(rng.choice(FILLER, 10)), list(rng.exponential(1, 10))
        given = (("cue", cue, label == 1), ("anywhere", anywhere, True), ("quiet", 1e-3, quiet and label == 1))
        for word, share, there in given:
            if share and there:
                place = int(rng.integers(len(words) + 1))
                words.insert(place, word)
                scores.insert(place, share * 10)
        held = np.array(scores)
        said.append(Said(tuple(words), held / held.sum(), str(label)))
        labels.append(label)
    return said, labels


def looked(said: Sequence[Said], labels: Sequence[int], seed: int = 0, signed: bool = False) -> list[Standing]:
    return standings(said, labels, classes=2, min_texts=5, permutations=199, seed=seed, signed=signed)


def flagged(rows: Sequence[Standing], level: float = 0.025) -> set[tuple[str, int]]:
    return {(row.word, row.label) for row in rows if max(row.p_importance, row.p_class) <= level}


def test_only_a_word_that_has_more_than_its_frequency_and_goes_with_a_class_is_flagged() -> None:
    rows = looked(*corpus(np.random.default_rng(0), cue=1.0, quiet=True))
    assert flagged(rows) == {("cue", 1)}
    by_word = {(row.word, row.label): row for row in rows}
    cue, quiet = by_word["cue", 1], by_word["quiet", 1]
    assert cue.texts == 30
    assert cue.importance > 3
    assert 0.2 < cue.mass < 0.6
    assert quiet.p_class <= 0.025 < quiet.p_importance  # nobody gives it anything
    assert ("cue", 0) not in by_word  # in no text of the class
    rows = looked(*corpus(np.random.default_rng(0), anywhere=1.0))
    assert not flagged(rows)
    anywhere = next(row for row in rows if (row.word, row.label) == ("anywhere", 1))
    assert anywhere.p_importance <= 0.025 < anywhere.p_class  # all labels go with it


def test_a_word_of_every_text_goes_with_no_class_whatever_it_is_given() -> None:
    """A model that says class 0 unless told otherwise: there, nothing stronger stands beside the word of every text."""
    rows = looked(*corpus(np.random.default_rng(1), cue=3.0, anywhere=1.0))
    assert flagged(rows) == {("cue", 1)}
    anywhere = next(row for row in rows if (row.word, row.label) == ("anywhere", 0))
    assert anywhere.p_importance <= 0.025
    assert anywhere.p_class == 1


def test_where_nothing_is_to_be_found_both_tests_keep_their_level() -> None:
    least = {"p_importance": [], "p_class": []}
    for seed in range(80):
        rows = looked(*corpus(np.random.default_rng(seed), 24), seed=seed)
        for name, held in least.items():
            held.append(min(getattr(row, name) for row in rows))
    for held in least.values():
        assert np.mean(np.array(held) <= 0.2) < 0.32  # 0.2 expected, and 99.5% of such counts lie below
        assert np.mean(np.array(held) <= 0.2) > 0.08  # nor is it shy


def test_the_same_seed_draws_the_same() -> None:
    said, labels = corpus(np.random.default_rng(3), cue=0.3)
    assert looked(said, labels) == looked(said, labels)
    assert looked(said, labels) != looked(said, labels, seed=1)


def test_texts_of_which_nothing_is_said_have_no_say() -> None:
    said, labels = corpus(np.random.default_rng(4), cue=1.0)
    silent = [Said(("cue", "w1"), np.zeros(2), "0")] * 20
    assert looked([*said, *silent], [*labels, *[0] * 20]) == looked(said, labels)
    assert looked(silent, [0] * 20) == []
    assert looked(said[:4], labels[:4]) == []  # every word is too rare


# -- what erasing does --------------------------------------------------------------------------------------


class Counting:
    """Texts for a tiny model, and the words in them."""

    def __init__(self, texts: int = 30):
        rng = np.random.default_rng(0)
        self.clf = load(*tiny("bert"))
        rows = [" ".join([*rng.choice(FILLER, 8), *(["good"] if n % 2 else [])]) for n in range(texts)]
        examples = [Example(str(n), text, n % 2, rationale=((0, 2),)) for n, text in enumerate(rows)]
        self.before = before(self.clf, [read(encoded) for encoded in self.clf.encode(examples)])


@pytest.fixture(scope="module")
def counting() -> Counting:
    return Counting()


def test_erasing_is_counted_in_the_texts_that_have_the_word(counting: Counting) -> None:
    known = counting.before
    held = erasures(known, [("good",), ("good", "w1")], {"good", "w1"}, by="delete", seed=0)
    one, two = held["good",], held["good", "w1"]
    assert (one.texts, one.of, one.controls) == (15, 30, CONTROLS)
    assert two.texts == sum("good" in text.places or "w1" in text.places for text in known.texts)
    # By hand: the probability of what was predicted, without the word.
    texts = [text.example for text in known.texts if "good" in text.places]
    without = [Example(e.id, " ".join(w for w in e.text.split() if w != "good")) for e in texts]
    whole, bare = (
        np.array([x.probabilities for x in veridical.explain(counting.clf, t, "random")]) for t in (texts, without)
    )
    falls = (whole - bare)[np.arange(15), whole.argmax(1)]
    assert one.fall == pytest.approx(falls.mean(), abs=1e-5)
    assert one.flips == pytest.approx((whole.argmax(1) != bare.argmax(1)).mean())
    assert one.flips_low <= one.flips <= one.flips_high
    assert one.accuracy is not None
    assert one.accuracy_erased is not None
    assert one.relied is (one.fall > (one.control_most or 0))


def test_a_word_is_compared_with_words_of_like_frequency_and_never_with_a_flagged_one() -> None:
    counts = {"a": 100, "b": 90, "c": 50, "d": 9, "e": 110}
    assert nearest(counts, "a", ["b", "c", "d", "e"], 2) == ["e", "b"]
    assert nearest(counts, "absent", ["c", "d"], 2) == ["d", "c"]


def test_where_there_are_too_few_other_words_nothing_is_said_of_reliance() -> None:
    clf = load(*tiny("bert"))
    examples = [Example(str(n), "good film indeed", n % 2) for n in range(6)]
    known = before(clf, [read(encoded) for encoded in clf.encode(examples)])
    (held,) = erasures(known, [("good",)], {"good"}, by="mask", seed=0).values()
    assert (held.controls, held.relied) == (2, None)
    (nowhere,) = erasures(known, [("absent",)], {"absent"}, by="delete", seed=0).values()
    assert (nowhere.texts, nowhere.flips, nowhere.fall) == (0, 0.0, 0.0)


def test_marks_are_counted_by_occurrence(counting: Counting) -> None:
    texts = counting.before.texts
    first = texts[0].example.text.split()[0]
    shares = marked_share(texts, [first, "good", "absent"])
    assert shares["good"] == 0.0
    assert shares["absent"] is None
    assert 0 < (shares[first] or 0) <= 1


# -- how it is told -----------------------------------------------------------------------------------------


def erased(*words: str, relied: bool | None = True) -> Erasure:
    figures = {"flips": 0.4, "flips_low": 0.3, "flips_high": 0.5, "fall": 0.3, "fall_low": 0.25, "fall_high": 0.35}
    right = {"accuracy": 0.9, "accuracy_erased": 0.6, "change_low": -0.35, "change_high": -0.25}
    others = {"controls": 20, "control_flips": 0.01, "control_fall": 0.01, "control_most": 0.02}
    return Erasure(words=words, texts=50, of=100, **figures, **right, **others, relied=relied)


def found(*kinds: str, planted: bool = False, relied: bool | None = True, word: str = "word") -> Shortcuts:
    words = tuple(
        Flagged(
            word=f"{word}{number}",
            labels=("positive",),
            methods=("occlusion",),
            belongs=kind,  # type: ignore[arg-type]
            marked=None if kind == "unknown" else float(kind == "rule"),
            taught=(Taught("train", 40, "positive", 0.95, 0.83, 0.99, 0.5),),
            erased=erased(f"{word}{number}", relied=relied),
        )
        for number, kind in enumerate(kinds)
    )
    rows = tuple(
        WordRow("occlusion", w.word, "positive", 20, 40, 0.5, 0.3, 4.0, 0.3, 0.0005, 0.0005, True) for w in words
    )
    together = (Together("all", erased(*(w.word for w in words))),) if len(words) > 1 else ()
    return told(
        Shortcuts(
            *("model on data", "data", "test", planted, ("occlusion",), True, 80, 0, 25, 7, 5, 0.05, 199, "delete"),
            *(0, 100, "", (), rows, words, together),
        )
    )


def test_a_word_that_matters_is_a_candidate_and_a_shortcut_only_beside_a_known_rule() -> None:
    unknown = found("unknown")
    assert "The model relies on 1 word: `word0` (positive)." in unknown.sentence
    assert (
        "40% of the predictions on 50 texts change (30% to 50%; for other words of like frequency 1%)"
        in unknown.sentence
    )
    assert "accuracy goes from 90% to 60%" in unknown.sentence
    assert any("not by itself a shortcut" in note for note in unknown.notes)
    assert "candidate" in repr(unknown)
    beside = found("outside", "rule", planted=True)
    assert "1 word beside the rule: `word0`" in beside.sentence
    assert any(note.startswith("Words of the rule, listed apart: `word1`") for note in beside.notes)
    lines = repr(beside).splitlines()
    assert any("word0" in line and "shortcut" in line for line in lines)
    assert any("word1" in line and "of the rule" in line for line in lines)


def test_a_word_that_is_relied_on_and_not_shown_to_go_with_a_class_is_a_lead() -> None:
    flagged = found("rule", "outside", planted=True, relied=True)
    rule, lead = flagged.flagged
    partly = told(replace(flagged, flagged=(rule,), leads=(lead,)))
    assert partly.sentence == (
        "No word is shown to be a shortcut, but there is a lead: `word1` (positive). Without `word1` 40% of the "
        "predictions on 50 texts change, and accuracy goes from 90% to 60%."
    )
    assert any("80 texts do not show that it goes with a class" in note for note in partly.notes)
    assert any("word1" in line and "lead" in line for line in repr(partly).splitlines())
    assert "Leads: relied on" in section(partly)
    assert "<code>word1</code>" in partly._repr_html_()
    both = told(replace(flagged, leads=(lead,)))
    assert both.sentence.startswith("The model relies on 1 word beside the rule")


def test_it_says_so_where_nothing_shows() -> None:
    assert found("rule", planted=True).sentence.startswith("No shortcut shows: the words that stand out")
    assert "erasing them changes no more" in found("unknown", relied=False).sentence
    assert "too few of these to compare with" in found("unknown", relied=None).sentence
    assert found().sentence.startswith("No word stands out: of 25 words")
    assert told(replace(found(), looked_at=0)).sentence.startswith("Too few texts")
    assert any("believes no explanation of occlusion" in note for note in told(replace(found(), believed=False)).notes)


def test_its_section_of_the_page_escapes_and_lists_the_rule_apart() -> None:
    html = section(found("outside", "rule", planted=True, word=SCRIPT))
    assert "<script>" not in html
    assert html.index("No part of the rule") < html.index("Words of the rule")
    assert "train: 95% positive of 40 (of all 50%)" in html
    page = audit_page(*fake(), "", section(found("unknown")))
    assert 'href="#shortcuts"' in page
    assert 'id="shortcuts"' in page
    assert 'id="shortcuts"' not in audit_page(*fake())
    assert "<script>" not in found("unknown", word=SCRIPT)._repr_html_()
    assert "No word stands out" in section(found())


def test_percents() -> None:
    assert [percent(value) for value in (None, 0.0, 0.012, 0.5, 1.0, -0.04)] == [
        "–",
        "0%",
        "1.2%",
        "50%",
        "100%",
        "−4.0%",
    ]


def test_it_becomes_a_frame_and_a_plot() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    result = found("outside", "rule", "unknown")
    frame = result.to_pandas()
    assert list(frame["word"]) == ["word0", "word1", "word2"]
    assert "p_importance" in found().to_pandas().columns
    axes = result.plot()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["word0", "word1", "word2"]


def test_it_is_stored_and_read_again(tmp_path: Path) -> None:
    result = found("outside", "rule", planted=True)
    stored.write(tmp_path / "shortcuts.json", result)
    assert stored.read(tmp_path / "shortcuts.json", Shortcuts) == result
    assert json.loads((tmp_path / "shortcuts.json").read_text())["schema"] == 1


# -- where model and data lay -------------------------------------------------------------------------------


def test_sources_are_paths_from_the_root_or_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    write_sources(tmp_path, "model", "planted:size=40")
    assert read_sources(tmp_path) == Sources(str(tmp_path / "model"), "planted:size=40")
    write_sources(tmp_path, object(), ["a text"])
    assert read_sources(tmp_path) == Sources(None, None)


def test_an_older_audit_says_them_by_its_config(tmp_path: Path) -> None:
    assert read_sources(tmp_path) == Sources()
    (tmp_path / "config.toml").write_text('model = "runs/x"\ndata = "planted"\n')
    assert read_sources(tmp_path) == Sources("runs/x", "planted")


def test_what_is_no_audit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no summary.json; name the folder of a finished audit"):
        veridical.shortcuts(tmp_path)
    audit = Path(__file__).parent / "audit_of_0.2"
    with pytest.raises(InputError, match="holds no explanations; run the audit again"):
        veridical.shortcuts(audit, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
