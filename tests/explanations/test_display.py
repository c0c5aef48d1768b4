from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import veridical
from tiny import FAMILIES, PAIRS, TEXTS, tiny
from veridical.core.records import Cost, Encoded, Example
from veridical.explanations.display import as_rich, as_text, cost_line, duration, number, pieces, top
from veridical.explanations.explanation import Explanation
from veridical.explanations.page import explain_snippet

SCRIPT = '<script>alert(1)</script> & "quotes" the film'


def made(text: str, scores: list[float], *, context: str | None = None, signed: bool = True) -> Explanation:
    """An explanation whose tokens are the words of the text, between two special ones."""
    spans, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        spans.append((start, at))
    count = len(spans)
    encoded = Encoded(
        Example("x", text, 1, context),
        ids=tuple(range(count + 2)),
        types=(0,) * (count + 2),
        spans=((0, 0), *spans, (0, 0)),
        words=(-1, *range(count), -1),
        free=(False, *[True] * count, False),
    )
    return Explanation(
        encoded,
        1,
        np.array([0, *scores, 0], dtype=np.float32),
        np.array([0.25, 0.75], dtype=np.float32),
        "occlusion",
        {},
        Cost(0.5, 4, 0),
        tokens=("[CLS]", *text.split(), "[SEP]"),
        labels=("negative", "positive"),
        signed=signed,
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("level", ["word", "token"])
def test_pieces_give_the_text_back_to_the_character(family, level):
    model, tokenizer = tiny(family)
    clf = veridical.load(model, tokenizer)
    for explanation in veridical.explain(clf, TEXTS, "gradient"):
        found = pieces(explanation, level)
        assert "".join(piece.text for piece in found) == explanation.text
        assert max(abs(piece.weight) for piece in found) == pytest.approx(1)
        shown = sum(piece.score for piece in found if piece.score is not None)
        assert shown == pytest.approx(float(explanation.scores.sum()), abs=1e-4)


def test_what_the_model_did_not_read_is_marked():
    model, tokenizer = tiny("bert")
    clf = veridical.load(model, tokenizer)
    with pytest.warns(UserWarning, match="longer than"):
        (explanation,) = veridical.explain(clf, "good film " * 100, "gradient")
    *_, last = pieces(explanation)
    assert last.unread
    assert last.score is None
    assert "".join(piece.text for piece in pieces(explanation)) == explanation.text
    for shown in (as_text(explanation), str(as_rich(explanation)), str(as_rich(explanation, colour=False))):
        assert "not read" in shown


def test_plain_text_has_every_word_with_its_score_and_no_special_token():
    shown = as_text(made("a fine film", [0.1, 1.5, -0.2]))
    assert "a(+0.10) fine(+1.50) film(-0.20)" in shown
    assert "occlusion explains positive (0.750): 500 ms, 4 forward passes" in shown
    assert "[CLS]" not in shown
    assert "fine(1.50)" in as_text(made("a fine film", [0.1, 1.5, 0.2], signed=False))


def test_context_is_shown_apart():
    explanation = made("a fine film", [0.1, 1.5, -0.2], context="Is it <good>?")
    assert "context: Is it <good>?" in as_text(explanation)
    assert "(read by the model, not explained): Is it &lt;good&gt;?" in explanation._repr_html_()
    model, tokenizer = tiny("bert", pair=True)
    text, question = PAIRS[0]
    (found,) = veridical.explain((clf := veridical.load(model, tokenizer)), Example("0", text, None, question))
    assert clf.labels
    assert "".join(piece.text for piece in pieces(found, "token")) == text


def test_terminal_highlights():
    explanation = made("a fine dull film", [0.0, 1.0, -0.5, 0.05])
    console = Console(force_terminal=True, color_system="truecolor", width=80)
    with console.capture() as seen:
        console.print(as_rich(explanation))
    shown = seen.get()
    assert "48;2;37;99;235mfine\x1b[0m" in shown  # strong and for: a block
    assert "38;2;217;88;12mdull\x1b[0m" in shown  # weaker and against: letters only
    assert "\x1b[0m film" in shown  # faint: bare
    assert str(as_rich(explanation, colour=False)) == "a [fine +1.00] [dull -0.50] film"


def test_markup_in_a_text_stays_text():
    explanation = made("[red]not a colour[/red]", [1.0, 0.5, 0.2])
    console = Console(color_system=None, width=200)
    with console.capture() as seen:
        console.print(as_rich(explanation))
    assert seen.get().strip() == "[red]not a colour[/red]"


def test_a_text_cannot_steer_the_terminal():
    explanation = made("fine\x1b[31m film", [1.0, 0.5], context="\x1b]0;title\x07")
    for shown in (as_text(explanation), str(as_rich(explanation)), str(as_rich(explanation, colour=False))):
        assert "\x1b" not in shown
        assert "\ufffd[31m" in shown


class Collector(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


@given(st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text.split()))
def test_notebook_snippet_escapes_everything(text):
    count = len(text.split())
    explanation = made(text, [1.0] * count, context=text)
    parser = Collector()
    parser.feed(explain_snippet({text: [explanation]}))
    assert set(parser.tags) <= {*"div style section h2 span ul li p strong code mark".split()}
    assert text.replace("\r\n", "\n").replace("\r", "\n") in parser.text.replace("\r\n", "\n").replace("\r", "\n")


def test_snippet_states_method_class_and_cost():
    shown = made(SCRIPT, [1.0, 0.5, 0.2, 0.1, 0.3])._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    for stated in ("occlusion", "predicted positive", "0.750", "500 ms, 4 forward passes"):
        assert stated in shown


def test_all_zero_scores_show_no_marks():
    explanation = made("a fine film", [0.0, 0.0, 0.0])
    assert top(pieces(explanation)) == []
    assert str(as_rich(explanation)) == "a fine film"
    assert "--w:" not in explanation._repr_html_().partition('<section class="text">')[2]


@pytest.mark.parametrize(
    ("value", "largest", "shown"),
    [(1.0, 0, "+1.00"), (0.01234, 1.0, "+0.01"), (-0.0001, 1.0, "0.00"), (123.4, 0, "+123"), (0.0, 0.0, "0")],
)
def test_numbers(value, largest, shown):
    assert number(value, True, largest) == shown


def test_tiny_and_huge_numbers_stay_readable():
    assert number(1.234e-9, False) == "1.23e-09"
    assert number(-12345.6, True) == "-12346"


def test_costs():
    assert cost_line(Cost(0.0123, 1, 1)) == "12 ms, 1 forward and 1 backward pass"
    assert cost_line(Cost(2.5, 51, 50)) == "2.5 s, 51 forward and 50 backward passes"
    assert cost_line(Cost(0.0, 0, 0)) == "0 ms, no passes"
    assert cost_line(Cost(0.1, 301, 0), 0.083) == "100 ms, 301 forward passes, sampling error 8%"
    assert cost_line(Cost(0.1, 9, 0), 0.0) == "100 ms, 9 forward passes, sampling error 0%"
    assert duration(123.4) == "123 s"
    assert [duration(seconds) for seconds in (299, 300, 1000, 7200, 12345, 360_000)] == [
        *("299 s", "5 min", "17 min", "2 h", "3.43 h", "100 h")
    ]
