"""What `explain` returns is a list or a dict as ever; it also displays, and is had as a table."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from test_display import SCRIPT, made

import veridical
from tiny import PAIRS, TEXTS, tiny
from veridical.core.errors import Caution, InputError
from veridical.explanations import portions
from veridical.explanations.collected import Explanations, ExplanationsByMethod


@pytest.fixture(scope="module")
def clf():
    return veridical.load(*tiny("bert"))


@pytest.fixture(scope="module")
def by_method(clf):
    return veridical.explain(clf, list(TEXTS), ["attention", "integrated_gradients:steps=4"])


def test_they_are_a_list_and_a_dict(clf, by_method):
    assert isinstance(by_method, dict)
    assert list(by_method) == ["attention", "integrated_gradients:steps=4"]
    found = by_method["attention"]
    assert isinstance(found, list)
    assert len(found) == len(TEXTS)
    assert type(found[1:3]) is Explanations
    assert found[1:3][0] is found[1]
    assert found + found[:1] == [*found, found[0]]
    assert pickle.loads(pickle.dumps(found))[0].text == found[0].text
    assert copy.copy(by_method) == by_method


def test_lines_say_what_matters_once_per_text_and_method(by_method):
    lines = repr(by_method).splitlines()
    assert len(lines) == 1 + 2 * len(TEXTS)
    assert "An unbelievable film!" in lines[3]
    assert "attention" in lines[3]
    assert lines[4].split()[0] == "integrated_gradients:steps=4"  # the class is the text's, and said once
    assert str(by_method["attention"]).count("attention") == len(TEXTS)
    assert repr(Explanations()) == repr(ExplanationsByMethod()) == "no explanation"


def test_many_texts_are_counted_not_shown():
    many = Explanations(made(f"film {place}", [1.0, -0.5]) for place in range(14))
    assert repr(many).endswith("and 4 more")
    assert many._repr_html_().count('<section class="text">') == 10
    assert "and 4 more texts" in many._repr_html_()
    assert "more text" not in many[:10]._repr_html_()


class Styles(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.inside, self.css = [], "", ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = tag

    def handle_data(self, data):
        self.css += data if self.inside == "style" else ""


def selectors(html: str) -> list[str]:
    parser = Styles()
    parser.feed(html)
    rules = (rule.partition("{")[0] for rule in re.sub(r"/\*.*?\*/", "", parser.css, flags=re.DOTALL).split("}"))
    return [one.strip() for rule in rules for one in rule.split(",") if rule.strip()]


def test_a_notebook_shows_methods_beside_each_other_and_styles_nothing_else(by_method):
    html = by_method._repr_html_()
    assert html.count('<section class="text">') == len(TEXTS)
    assert html.count('<div class="method">') == 2 * len(TEXTS)
    scoped = selectors(html)
    assert len(scoped) > 20
    assert all(one.startswith(".veridical.veridical") for one in scoped), scoped


def test_everything_is_escaped():
    nasty = made(SCRIPT, [1.0, 0.5, 0.2, 0.1, 0.3], context=SCRIPT)
    html = ExplanationsByMethod({SCRIPT: Explanations([nasty])})._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_the_legend_is_true_of_signs():
    signed, unsigned = made("a fine film", [0.1, 1.0, -0.4]), made("a fine film", [0.1, 1.0, 0.4], signed=False)
    first, second = signed._repr_html_(), unsigned._repr_html_()
    assert "speaks for the explained class" in first
    assert "speaks against it" in first
    assert "matters" not in first.partition("</style>")[2]
    assert "speaks" not in second
    assert "these scores have no sign" in second
    assert 'class="for' not in second.partition("</style>")[2]
    both = ExplanationsByMethod(a=Explanations([signed]), b=Explanations([unsigned]))._repr_html_()
    assert "matters (scores without a sign)" in both


def test_a_table_has_a_row_per_token_of_the_text(by_method):
    frame = by_method.to_pandas()
    assert list(frame) == list(Explanations.COLUMNS)
    free = sum(sum(one.encoded.free) for several in by_method.values() for one in several)
    assert len(frame) == free
    third = by_method["attention"][2]
    rows = frame[(frame.example == third.example.id) & (frame.method == "attention")]
    for row in rows.itertuples():
        assert row.score == third.scores[row.position]
        assert row.token == third.tokens[row.position]
        assert third.words[row.word_index] == row.word
        assert third.text[row.start : row.end] in row.word
    assert np.allclose(rows.groupby("word_index").score.sum(), third.word_scores, atol=1e-6)
    dataset = by_method["attention"].to_dataset()
    assert dataset.num_rows == free / 2
    assert dataset.column_names == list(Explanations.COLUMNS)
    assert Explanations().to_pandas().dtypes.astype(str)["score"] == "float64"


# -- one by one ---------------------------------------------------------------------------------------------


def same(a, b) -> bool:
    return a.text == b.text and a.target == b.target and a.scores.tobytes() == b.scores.tobytes()


@pytest.mark.parametrize("method", ["input_x_gradient", "attention", "occlusion"])
def test_one_by_one_they_are_the_same_to_the_last_bit(clf, method):
    texts = [*TEXTS, *reversed(TEXTS), *(f"{text} {text}" for text in TEXTS)]
    whole = veridical.explain(clf, texts, method, budget=48, overlap=2)
    found = list(veridical.explain_iter(clf, texts, method, budget=48, overlap=2))
    assert len(found) == len(whole) == len(texts)
    assert all(map(same, found, whole))


def test_the_first_is_there_before_the_others_are_worked_on(clf):
    before, texts = clf.forwards, [*TEXTS, *TEXTS]
    found = veridical.explain_iter(clf, texts, "gradient", budget=16)
    assert clf.forwards == before
    next(found)
    assert 0 < clf.forwards - before < len(texts)
    with torch.no_grad():  # between two of them nothing is changed
        next(found)
        assert not torch.is_grad_enabled()


def test_stretches_change_no_window_of_a_text(clf, monkeypatch):
    texts = [" ".join(TEXTS[4:5] * count) for count in (1, 5, 2, 4)]
    whole = veridical.explain(clf, texts, "gradient", overlap=4)
    monkeypatch.setattr(portions, "STRETCH", 2)
    for a, b in zip(veridical.explain_iter(clf, texts, "gradient", overlap=4), whole, strict=True):
        assert a.text == b.text
        assert np.allclose(a.scores, b.scores, atol=1e-6)


def test_mistakes_are_found_at_once(clf):
    with pytest.raises(InputError, match="There is no attribution method"):
        veridical.explain_iter(clf, "good", "nonsense")
    with pytest.raises(InputError, match="method is"):
        veridical.explain_iter(clf, "good", ["attention"])
    model, tokenizer = tiny("bert", pair=True)
    (found,) = veridical.explain_iter(veridical.load(model, tokenizer), PAIRS[:1], "gradient")
    assert found.example.context == PAIRS[0][1]


def test_the_warning_of_cuts_speaks_python(clf):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        veridical.explain(clf, " ".join(TEXTS[4:5] * 5), "gradient")
    (caution,) = [one for one in seen if issubclass(one.category, Caution)]
    assert str(caution.message).endswith("explains them whole with overlap=N.")
    assert caution.filename == __file__  # the line that called


def test_askers_come_in_portions_before_the_others_are_asked(clf):
    texts = [f"{text} {number}" for number in range(6) for text in TEXTS]
    before, told = clf.forwards, []
    for found in veridical.explain_iter(clf, texts, "lime:samples=40:error=0", budget=256):
        told.append((found.example.id, clf.forwards - before))
    assert [id for id, _ in told] == [str(place) for place in range(len(texts))]
    assert len({count for _, count in told}) >= 5
    whole = veridical.explain(clf, texts, "lime:samples=40:error=0", budget=256)
    assert all(map(same, veridical.explain_iter(clf, texts, "lime:samples=40:error=0", budget=256), whole))


def test_an_argument_by_a_wrong_name_is_told_the_right_one(clf):
    with pytest.raises(InputError, match=r"^explain takes no methods=; write method=, which may be a list of names\.$"):
        veridical.explain(clf, "good", methods=["lime"])
    with pytest.raises(InputError, match=r"explain takes no tarqet=; write target=\."):
        veridical.explain(clf, "good", "lime", tarqet=1)
    with pytest.raises(
        InputError, match=r"The attribution method 'lime' has no option 'sampels'\. Did you mean 'samples'"
    ):
        veridical.explain(clf, "good", "lime", sampels=1)


def test_a_text_that_is_not_there_cannot_be_plotted(clf):
    found = veridical.explain(clf, "good", ["attention", "random"])
    with pytest.raises(InputError, match=r"^text is 1, the place of a text among 1; it must be 0\.$"):
        found.plot(1)
