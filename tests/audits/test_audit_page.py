from __future__ import annotations

import copy
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from fake_audit import CASES, METHODS, METRICS, SCRIPT, Stored, bare, fake, records
from hypothesis import given
from hypothesis import strategies as st
from page_reader import Reader

from veridical.audits.known_error import KNOWN
from veridical.audits.page import audit_page
from veridical.audits.page_examples import as_json, packed
from veridical.audits.page_verdict import odds
from veridical.audits.record import AuditSummary, ShownScores, read_examples, read_summary
from veridical.core import store
from veridical.page import render as report
from veridical.page.plots import linear
from veridical.page.words import figure, interval, net, net_interval, p_value, short_names, small_p


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
    hostile["spending"][0]["without"] = [SCRIPT]
    hostile["stability"][0]["name"] = SCRIPT
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


def numbers_of_metrics(summary: AuditSummary) -> list[tuple[str, ...]]:
    wanted: list[tuple[str, ...]] = []
    votes = {metric.name: "✓ yes" if metric.votes else "no" for metric in summary.metrics}
    for c in summary.cells:
        words = (figure(c.mean), interval(c.low, c.high), figure(c.sampling_error))
        wanted.append((c.metric, c.method, *words, str(c.n), str(c.undefined)))
        if c.curve and not c.method.startswith("random"):
            ends = zip(c.curve, c.curve_low, c.curve_high, strict=True)
            wanted.append((c.method, *(f"{figure(v)}{interval(low, high)}" for v, low, high in ends)))
    for d in summary.diagnosticity:
        value, ties = (figure(d.value), interval(d.low, d.high)), (figure(d.strict), figure(d.ties_win))
        rates = (figure(d.tie_rate), p_value(d.p_holm))
        by_ratio = " ".join(figure(value) for value in d.curve)
        who = (d.metric, d.method or "all together", d.control)
        wanted.append((*who, *value, *ties, *rates, figure(d.pairs), by_ratio))
        if not d.method:
            first = d.control == "orders"
            sign = f"{'●' if first else '○'} {d.control}"
            wanted.append((d.metric, "", sign, *value, *rates, votes[d.metric] if first else ""))
    by_method = [test for test in summary.metric_tests_by_method if test.corpus == "movies"]
    for t in (*summary.metric_tests, *by_method):
        words = (figure(t.difference), figure(t.effect), p_value(t.p), p_value(t.p_holm))
        who = (t.method,) if t.method else ()
        wanted.append((*who, t.a, t.b, *words, p_value(t.p_rank_sum), figure(t.n)))
    for c in summary.comparisons:
        words = (figure(c.difference), figure(c.effect), p_value(c.p), p_value(c.p_holm), str(c.n))
        if c.corpus == "movies":
            wanted.append((c.a, c.b, *words, "yes" if c.distinguishable else "no"))
    return wanted


def numbers_of_verdicts(summary: AuditSummary) -> list[tuple[str, ...]]:
    wanted: list[tuple[str, ...]] = []
    tags = {
        "believe": "✓ believe",
        "as_good": "≈ as good",
        "open": "? open",
        "behind": "↓ worse",
        "chance": "✗ do not use",
    }
    short = dict(zip((m.name for m in summary.methods), short_names([m.name for m in summary.methods]), strict=True))
    for r in summary.ranking:
        shown = "✓ " if r.better_than_chance else ""
        over_chance = shown + net(r.net_chance) + net_interval(r.net_chance_low, r.net_chance_high)
        over_first = net(r.net_first) + net_interval(r.net_first_low, r.net_first_high) if r.place > 1 else "the first"
        let_go = "kept"
        if r.left is not None:
            let_go = f"after {r.left} texts for {short[r.by]}p {small_p(r.p_behind)}, level {small_p(r.level)}"
        tag = "↓ clearly worse" if r.clearly else tags[r.list or ""]
        words = (over_chance, over_first, str(r.n), f"{r.passes:.3g}", let_go)
        wanted.append((str(r.place), r.method, tag, "", *words))
    for look in summary.looks:
        for d in look.dropped:
            wanted.append((d.method, d.by, net(d.mean), str(d.texts), small_p(d.p), small_p(d.level)))
        for shown in look.shown:
            words = (net(shown.mean), str(shown.texts), small_p(shown.p), small_p(shown.level))
            wanted.append((shown.method, *words))
    for x in summary.spending:
        counts = (x.spent, x.planned, x.stability, x.spent - x.stability, x.fixed)
        passes = [f"{count:,.0f}" for count in counts]
        wanted.append((x.corpus, "", *passes, f"{x.budget:,}", "12 ms", ", ".join(x.without)))
    return wanted


def test_every_number_stands_in_a_table(kept, page):
    summary, _ = kept
    rows = Reader(page).rows()
    names = short_names([method.name for method in summary.methods])
    wanted = numbers_of_metrics(summary) + numbers_of_verdicts(summary)
    wanted += [(pair.a, pair.b, figure(pair.tau), figure(pair.jaccard), figure(pair.n)) for pair in summary.agreement]
    named = [row for row in summary.sparsity if not row.method.startswith("random")]
    wanted += [(row.method, *(figure(mass) for mass in row.mass)) for row in named]
    labels = {method.name: name for method, name in zip(summary.methods, names, strict=True)}
    for t in summary.truth:
        rated = [pair for pair in zip(t.order, t.values, strict=True) if not pair[0].startswith("random")]
        wanted += [(labels.get(name, name), "", figure(value)) for name, value in rated]
    missing = [row for row in wanted if row not in rows]
    assert not missing, f"{len(missing)} of {len(wanted)} rows are missing, such as {missing[0]}"
    for c in summary.corpora:
        assert any(row[0] == c.name and figure(c.macro_f1) in row and figure(c.texts) in row for row in rows)


def test_the_random_orders_stand_as_one(kept, page):
    summary, _ = kept
    rows = Reader(page).rows()
    cells = [c for c in summary.cells if (c.corpus, c.metric) == ("movies", "decision_flip") and "random" in c.method]
    assert len(cells) == 3
    assert ("random orders", "", figure(sum(c.mean for c in cells) / 3), "96") in rows
    figures = page[: page.index('id="trust"')] + page[page.index('id="cost"') : page.index('id="examples"')]
    assert "random:seed=1" not in figures  # but in the tables of every number
    data = json.loads(Reader(page).data)
    explained = {data["methods"][m] for text in data["examples"] for m, *_ in text["explanations"]}
    assert "a random order" in explained
    assert len(explained) == 11 + 1 + 2  # methods, chance, oracles


def test_the_places_under_other_settings_stand_in_a_table(kept, page):
    summary, _ = kept
    rows = Reader(page).rows()
    for name, said in (("delete", "tokens deleted"), ("sufficiency + decision_flip", "sufficiency + decision_flip")):
        places = [row for row in summary.stability if row.name == name]
        assert (said, *(str(row.place) for row in places), str(places[0].texts)) in rows


def test_looks_are_told_one_by_one(kept, page):
    told = [
        " ".join(re.sub("<[^>]+>", "", part).split()) for part in re.findall(r"<li class=\"look\">.*?</p>", page, re.S)
    ]
    home = [look for look in kept[0].looks if look.corpus == "movies"]
    assert len(told) == len(kept[0].looks)
    assert told[0].startswith("Look 1 after 24 texts and 2,520 passes 7 methods had been asked.")
    assert told[0].endswith("9 methods go on.")
    assert "integrated_gradients, occlusion, kernel_shap, lime from here on" in told[1]
    assert told[len(home) - 1].endswith("It ended here: the texts that were asked for are used up.")


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_an_audit_of_before_net_wins_has_a_page(version):
    folder = Path(__file__).parent / f"audit_of_{version}"
    summary = read_summary(folder)
    page = audit_page(summary, read_examples(folder))
    Reader(page)
    assert summary.verdicts[0].sentence in page
    for later in ('id="looks"', 'id="stability"', "Each list names", "over the first", "What the audit took"):
        assert later not in page
    if summary.ranking:
        assert "from before net wins were counted" in page
        assert ("1", "occlusion", "✓ believe", "24", "✓ shown p <0.0001") in Reader(page).rows()


def test_what_is_missing_is_said(kept, page):
    assert any(cell.mean is None for cell in kept[0].cells)
    assert ("attention", "", "undefined", "0") in Reader(page).rows()  # the row of a dot panel
    assert re.search(r"\d+ of \d+ values undefined, left out", page)


def test_the_answer_comes_first(kept, page):
    first_screen = " ".join(re.sub("<[^>]+>", " ", page[page.index('id="answer"') : page.index("<nav")]).split())
    for words in (
        kept[0].verdicts[0].sentence,
        "✓ Believe integrated_gradients",
        "≈ As good (within 60:40) deeplift",
        "? Open: not told from it occlusion kernel_shap",
        "↓ Worse lime",
        "✗ Do not use: no better than chance attention",
        "96 texts, 11 methods, 3 metrics Votes: sufficiency, comprehensiveness, decision_flip.",
        "Each list names a method wrongly in at most 5% of audits; as good means within 60:40.",
        "first two in 4 of 4 settings integrated_gradients is among the first two of 4 contenders in 4 of 4 settings",
        "integrated_gradients comes first by 4 of 7 subsets of the metrics.",
        "right on 88% 95% interval 80% to 94%, on 96 texts. Always saying the most frequent class is right on 52%: "
        "the model knows more.",
        "On 3 texts no erasure tells two methods apart.",
        "89,968 passes at most At most 90,000 were planned, if no method is let go early. The budget was 90,000.",
        "The looks took 89,568, where letting nobody go takes 120,864. Stability took 400.",
        f"{KNOWN.wrong} of {KNOWN.worlds} worlds Such a verdict was {KNOWN.share.partition(' (')[0]}",
    ):
        assert words in first_screen
    assert page.index(kept[0].verdicts[0].sentence) < page.index("<table")
    assert "No method is recommended" not in page


def test_where_nothing_may_be_claimed_the_page_says_so():
    unsure = audit_page(*fake(enough=False, quick=True))
    assert "No method is recommended" in unsure
    assert "A full run would add" in unsure
    assert 'class="triage"' not in unsure
    assert "no list" in unsure


@pytest.mark.parametrize(("margin", "words"), [(0.2, "60:40"), (0.1, "55:45"), (0.25, "62.5:37.5")])
def test_a_margin_as_odds(margin, words):
    assert odds(margin) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "undefined"), (0.2, "0.2"), (0.00114, "0.0011"), (0.000012, "1.2e−5"), (2.0**-60, "8.7e−19"), (0.0, "0")],
)
def test_a_p_that_is_held_against_a_level_keeps_two_digits(value, words):
    assert small_p(value) == words


@pytest.mark.parametrize(("value", "words"), [(None, "undefined"), (0.618, "+0.62"), (-0.001, "0.00"), (-1, "−1.00")])
def test_net_wins_have_a_sign(value, words):
    assert net(value) == words


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
    assert data["orders"][0] == [*range(12), 14, 15]  # chance and the oracles have no place, so last
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
    for sign in ("for", "against", "matters"):
        deepest = tuple(0.55 * a + 0.45 * b for a, b in zip(colours[sign], colours["card"], strict=True))
        pairs.append(("ink", deepest))  # type: ignore[arg-type]
    for ink, ground in pairs:
        dark, light = sorted((_luminance(colours[ink]), _luminance(ground)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)
