from __future__ import annotations

import copy
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fake_audit import CASES, METHODS, METRICS, SCRIPT, Stored, bare, fake, records
from hypothesis import given
from hypothesis import strategies as st

from veridical.audits.page import audit_page
from veridical.audits.page_examples import as_json, packed
from veridical.audits.record import ShownScores
from veridical.core import store
from veridical.page import render as report
from veridical.page.plots import linear
from veridical.page.words import figure, interval, p_value, rank, rank_interval, short_names

# -- reading a page -----------------------------------------------------------------------------------------

VOID = {"meta", "link", "br", "col", "input", "img"}
IMPLIED = {"td", "th", "tr", "tbody", "thead", "tfoot"}  # their end tags may be left out


class Reader(HTMLParser):
    """Checks that elements nest, and takes from a page its elements, its data block and the rows of its tables."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.tables: list[list[list[tuple[str, int]]]] = []
        self.feed(page)
        self.close()
        assert self.open == [], f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        if tag in ("td", "th", "tr", "tbody", "tfoot"):
            closed = {"td": ("td", "th"), "th": ("td", "th"), "tr": ("td", "th", "tr")}.get(tag, IMPLIED)
            while self.open[-1] in closed:
                self.open.pop()
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append(("", int(given.get("rowspan") or 1)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self.open[-1] in IMPLIED and self.open[-1] != tag:
            self.open.pop()
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"] and self.elements[-1][1].get("id") == "data":
            self.data += data
        if "table" in self.open and "svg" not in self.open and self.tables[-1] and self.tables[-1][-1]:
            text, span = self.tables[-1][-1][-1]
            self.tables[-1][-1][-1] = (text + data, span)

    def rows(self) -> set[tuple[str, ...]]:
        """The rows of all tables, with what a cell spans repeated."""
        found = set()
        for table in self.tables:
            held: dict[int, tuple[str, int]] = {}  # column -> what reaches down into the next rows, and how far
            for cells in table:
                row: list[str] = []
                waiting = list(cells)
                while waiting or len(row) in held:
                    if len(row) in held:
                        text, left = held.pop(len(row))
                    else:
                        text, left = waiting.pop(0)
                    if left > 1:
                        held[len(row)] = (text, left - 1)
                    row.append(" ".join(text.replace("\u200b", "").split()))
                held = {k: v for k, v in held.items() if k < len(row)}
                found.add(tuple(row))
        return found

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [given for name, given in self.elements if name == tag]


@pytest.fixture(scope="module")
def kept() -> Stored:
    return fake(truth=True)


@pytest.fixture(scope="module")
def page(kept) -> str:
    return audit_page(*kept)


# -- tests --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given_", CASES.values(), ids=CASES)
def test_a_page_is_whole(given_):
    summary, examples = given_
    page = audit_page(summary, examples)
    read = Reader(page)
    ids = [given["id"] for _, given in read.elements if "id" in given]
    assert len(ids) == len(set(ids))
    links = [given["href"] for tag, given in read.elements if tag in ("a", "use")]
    assert {link[1:] for link in links if link} <= set(ids)
    assert all(given.get("scope") for given in read.all("th"))
    assert all(given.get("aria-label") for given in read.all("svg") if given.get("role") == "img")
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert len(json.loads(read.data)["examples"]) == len(examples.texts)
    shown = page.split('<script type="application/json"')[0]
    assert not re.search(r"\b(NaN|nan|None|inf)\b", shown)


def test_nothing_comes_from_outside(page):
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|\bsrc=(?!x)", page)
    assert "default-src 'none'" in page


def test_all_text_is_escaped():
    summary, examples = (store.plain(each) for each in fake(("gradient", f"lime:{SCRIPT}"), labels=(SCRIPT, "fine")))
    hostile = json.loads(json.dumps(summary).replace("movies", json.dumps(f"movies{SCRIPT}")[1:-1]))
    for described in (*hostile["methods"], *hostile["metrics"]):
        described["summary"] = SCRIPT
    hostile |= {"title": SCRIPT, "created": SCRIPT, "quick": True, "quick_note": SCRIPT, "stamp": {SCRIPT: SCRIPT}}
    hostile["settings"]["target"] = SCRIPT
    hostile["verdicts"][0] |= {"sentence": SCRIPT, "notes": [SCRIPT]}
    for text in examples["texts"]:
        text["corpus"] = text["corpus"].replace("movies", f"movies{SCRIPT}")
    page = audit_page(*records(hostile, examples["texts"]))
    assert len(Reader(page).all("script")) == 2
    assert not Reader(page).all("img")
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 20


@pytest.mark.parametrize("text", ["</script>", "<!-- <script>", "half \ud83d pair", "\u2028\0", "😍 שלום"])
def test_embedded_json_gives_any_text_back(text):
    written = as_json([text])
    assert "<" not in written
    assert json.loads(written.encode("utf-8")) == [text]


def test_every_number_stands_in_a_table(kept, page):
    summary, _ = kept
    rows = Reader(page).rows()
    names = short_names([one.name for one in summary.methods])
    wanted: list[tuple[str, ...]] = []
    for c in summary.cells:
        words = (figure(c.mean), interval(c.low, c.high), figure(c.sampling_error))
        wanted.append((c.metric, c.method, *words, str(c.n), str(c.undefined)))
        if c.curve:
            ends = zip(c.curve, c.curve_low, c.curve_high, strict=True)
            wanted.append((c.method, *(f"{figure(v)}{interval(low, high)}" for v, low, high in ends)))
    for d in summary.diagnosticity:
        own, ties = (figure(d.value), interval(d.low, d.high)), (figure(d.strict), figure(d.ties_win))
        rest = (figure(d.tie_rate), p_value(d.p_holm))
        by_ratio = " ".join(figure(value) for value in d.curve)
        who = (d.metric, d.method or "all together", d.control)
        wanted.append((*who, *own, *ties, *rest, figure(d.pairs), by_ratio))
        if not d.method:
            first = d.control == "permutation"
            weight = next(v for v in summary.verdicts if v.corpus == d.corpus).weights[d.metric]
            sign = f"{'●' if first else '○'} {d.control}"
            wanted.append((d.metric, "", sign, *own, *rest, f"{weight:.2f}" if first else ""))
    by_method = [one for one in summary.metric_tests_by_method if one.corpus == "movies"]
    for t in (*summary.metric_tests, *by_method):
        words = (figure(t.difference), figure(t.effect), p_value(t.p), p_value(t.p_holm))
        who = (t.method,) if t.method else ()
        wanted.append((*who, t.a, t.b, *words, p_value(t.p_rank_sum), figure(t.n)))
    for c in summary.comparisons:
        words = (figure(c.difference), figure(c.effect), p_value(c.p), p_value(c.p_holm), str(c.n))
        if c.corpus == "movies" or not c.metric:
            wanted.append((c.a, c.b, *words, "yes" if c.distinguishable else "no"))
    for one in summary.agreement:
        wanted.append((one.a, one.b, figure(one.tau), figure(one.jaccard), figure(one.n)))
    for one in summary.sparsity:
        wanted.append((one.method, *(figure(mass) for mass in one.mass)))
    for r in summary.ranking:
        words = (rank(r.mean_rank), rank_interval(r.low, r.high), str(r.group))
        answers = {True: "✓ yes", False: "✗ not shown", None: "not asked"}
        control = f" p {p_value(r.p_control)}" if r.p_control is not None else ""
        beats = (answers[r.better_than_random], answers[r.beats_control] + control)
        wanted.append((str(r.place), r.method, "", *words, *beats))
    for t in summary.truth:
        labels = {one.name: name for one, name in zip(summary.methods, names, strict=True)}
        wanted += [(labels.get(name, name), "", figure(value)) for name, value in zip(t.order, t.values, strict=True)]
    missing = [row for row in wanted if row not in rows]
    assert not missing, f"{len(missing)} of {len(wanted)} rows are missing, such as {missing[0]}"
    for c in summary.corpora:
        assert any(row[0] == c.name and figure(c.macro_f1) in row and figure(c.texts) in row for row in rows)


def test_what_is_missing_is_said(kept, page):
    assert any(one.mean is None for one in kept[0].cells)
    assert ("attention", "", "undefined") in Reader(page).rows()  # the row of a dot panel
    assert "42 of 448 values undefined" in page


def test_the_answer_comes_first(kept, page):
    sentence = kept[0].verdicts[0].sentence
    assert page.index(sentence) < page.index("<table")
    assert "Rests on <strong>32 texts</strong>" in page
    assert "Not enough to go on" not in page
    unsure = audit_page(*fake(enough=False, quick=True))
    assert "Not enough to go on" in unsure
    assert "A full run would add" in unsure
    assert 'class="believe"' not in unsure


def test_likeness_to_people_stands_apart_and_is_said_to_be_missing(page):
    assert page.index('id="ranking"') < page.index('id="plausibility"') < page.index("average_precision</code>")
    assert "carry no human rationales" in audit_page(*fake(metrics=METRICS[:2]))


def test_sections_without_data_are_left_out():
    without = audit_page(*bare("sparsity"))
    assert 'id="truth"' not in without
    assert 'id="sparsity"' not in without
    assert 'id="truth"' in audit_page(*fake(truth=True))


def test_the_page_is_a_pure_function(kept):
    summary, examples = kept
    before = copy.deepcopy((summary, examples))
    assert audit_page(summary, examples) == audit_page(summary, examples)
    assert (summary, examples) == before


def test_orders_put_the_best_first_and_the_undefined_last(page):
    data = json.loads(Reader(page).data)
    assert data["orders"][0] == list(range(14))  # the oracles are not ranked, so last
    lower_is_better = data["orders"][1 + [name for name, *_ in METRICS].index("decision_flip")]
    assert lower_is_better.index(0) < lower_is_better.index(11)
    corr = data["orders"][1 + [name for name, *_ in METRICS].index("corr")]
    assert corr[-1] == METHODS.index("attention")


def test_the_page_stays_light():
    page = audit_page(*fake(examples=200, words=35))
    assert len(page.encode()) < 1_500_000


def test_tokens_of_one_character_are_one_unit():
    example = fake(("lime",), METRICS[:1], (), examples=1)[1].texts[0]
    tokens = ((0, 1), (1, 1), (2, 3), (2, 3), (3, 4), (4, 4))
    scores = ShownScores("positive", (0.1, 0.2, 0.3, 0.4, -0.5, 0.05))
    example = replace(example, text="a 😍b", tokens=tokens, explanations={"lime": scores})
    text = packed(example, {"lime": 0}, {"movies": 0}, ["negative", "positive"])
    assert text.units == [0, 1, 2, 3, 3, 4]
    assert text.explanations == [(0, "positive", -4, [1000, 9000, -4500])]


def test_an_explanation_of_nothing_is_packed_too():
    example = fake(("lime",), METRICS[:1], (), examples=1)[1].texts[0]
    example = replace(example, text="  ", tokens=(), explanations={"lime": ShownScores("positive", ())})
    assert packed(example, {"lime": 0}, {"movies": 0}, ["a"]).explanations == [(0, "positive", 0, [])]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "undefined"), (0, "0"), (0.0, "0"), (12, "12"), (1234, "1,234"), (-0.25, "−0.250"), (0.00001, "1e−05"),
        (12.34, "12.3"), (float("inf"), "∞"),
    ],
)  # fmt: skip
def test_numbers_in_words(value, said):
    assert figure(value) == said


@given(st.lists(st.text("ab:_=1", min_size=1, max_size=60), unique=True, max_size=30))
def test_short_names_differ_and_fit(specs):
    names = short_names(specs)
    assert len(set(names)) == len(specs)
    assert all(len(name.split(" #")[0]) <= 20 for name in names)


def test_short_names_say_what_differs():
    specs = ("integrated_gradients:steps=50:rule=right", "integrated_gradients:steps=20:rule=right", "lime:samples=9")
    assert short_names(specs) == ["integrated…:steps=50", "integrated…:steps=20", "lime"]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=9))
def test_a_scale_holds_its_values_and_its_bounds(values):
    scale = linear(values, 0, 100, (-1, 1))
    assert -1 <= scale.low <= min(values) + 1e-9
    assert max(values) - 1e-9 <= scale.high <= 1
    assert all(scale.low - 1e-9 <= tick <= scale.high + 1e-9 for tick in scale.ticks)
    assert len(scale.ticks) <= 6


def _luminance(colour: tuple[float, float, float]) -> float:
    linear_ = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    return 0.2126 * linear_[0] + 0.7152 * linear_[1] + 0.0722 * linear_[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_letters_stand_out_from_their_ground(scheme):
    """Contrast of at least 4.5 for every colour of letters on every ground, highlights at their deepest included."""
    folder = Path(report.__file__).parent
    colours: dict[str, tuple[float, float, float]] = {}
    for sheet in ("style.css", "report.css"):
        blocks = re.findall(r":root \{(.*?)\}", (folder / sheet).read_text(), re.DOTALL)
        for block in blocks[: scheme + 1]:
            for name, value in re.findall(r"--([\w-]+):\s*([^;]+)", block):
                if re.fullmatch("#[0-9a-f]{6}", value):
                    colours[name] = tuple(int(value[k : k + 2], 16) for k in (1, 3, 5))  # type: ignore[assignment]
                elif re.fullmatch(r"\d+, \d+, \d+", value):
                    colours[name] = tuple(float(part) for part in value.split(","))  # type: ignore[assignment]
    grounds = {name: colours[name] for name in ("page", "card", "apart")}
    pairs = [(ink, ground) for ink in ("ink", "soft", "good", "bad") for ground in grounds.values()]
    for sign in ("for", "against"):
        deepest = tuple(0.55 * a + 0.45 * b for a, b in zip(colours[sign], colours["card"], strict=True))
        pairs.append(("ink", deepest))  # type: ignore[arg-type]
    for ink, ground in pairs:
        dark, light = sorted((_luminance(colours[ink]), _luminance(ground)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)
