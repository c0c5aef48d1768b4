"""The audit's page in headless Chromium: no complaint, nothing run that a text brings, and a browser that works."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fake_audit import METRICS, SCRIPT, TEXTS, Stored, fake
from fake_course import CHANCE

from veridical.audits.page import audit_page

CHROMIUM = shutil.which("chromium")
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
Browse = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed; apt-get install chromium to run this"),
]


@pytest.fixture(scope="module")
def kept() -> Stored:
    return fake()


@pytest.fixture(scope="module")
def page(kept, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "report.html"
    path.write_text(audit_page(*kept), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browse(tmp_path_factory) -> Browse:
    profile = tmp_path_factory.mktemp("profile")

    def run(page: Path, *flags: str, state: str = "") -> subprocess.CompletedProcess[str]:
        assert CHROMIUM is not None
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
        command += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}"]
        command += ["--enable-logging=stderr", "--v=0", *flags, page.as_uri() + state]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done

    return run


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def card(done: subprocess.CompletedProcess[str]) -> str:
    """The example shown."""
    found = re.search(r'<article class="text" id="card".*?</article>', done.stdout, re.DOTALL)
    assert found
    return found[0]


def texts(markup: str) -> list[str]:
    """What each method's copy of the text reads."""
    found = re.findall(r'<p class="words"[^>]*>(.*?)</p>', markup, re.DOTALL)
    return [unescape(re.sub(r"<[^>]+>", "", one)) for one in found]


def driven(page: Path, folder: Path, script: str) -> Path:
    """A copy that plays a reader's part and writes what it sees into the body's `data-seen`. The page runs no script
    but its own, so the copy goes without that rule."""
    text = POLICY.sub("", page.read_text(encoding="utf-8"))
    play = f"<script>document.body.dataset.seen = JSON.stringify((() => {{ {script} }})())</script></body>"
    path = folder / "driven.html"
    path.write_text(text.replace("</body>", play), encoding="utf-8")
    return path


def seen(done: subprocess.CompletedProcess[str]) -> Any:
    found = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert found, done.stderr[-500:]
    return json.loads(unescape(found[1]))


def test_the_page_opens_without_a_complaint(browse, page, kept):
    done = browse(page, "--dump-dom")
    assert complaints(done) == []
    assert texts(card(done)) == [TEXTS[0]] * 12
    assert "predicted" in card(done)


def test_the_smallest_page_opens_without_a_complaint(browse, tmp_path):
    path = tmp_path / "small.html"
    for given in (
        fake(("gradient",), METRICS[:1], (), examples=0),
        fake(("gradient",), METRICS[9:10], (), texts=1, examples=1, quick=True, enough=False),
    ):
        path.write_text(audit_page(*given), encoding="utf-8")
        assert complaints(browse(path, "--dump-dom")) == []


def test_a_hostile_text_shows_as_text(browse, page):
    done = browse(page, "--dump-dom", state="#text=3&share=100")
    assert complaints(done) == []
    assert SCRIPT in TEXTS[2]
    assert texts(card(done)) == [TEXTS[2]] * 12
    assert not re.search(r"<(script|img|b>tr|i>g)", card(done))


def test_emoji_and_right_to_left_texts_are_cut_where_they_should_be(browse, page):
    done = browse(page, "--dump-dom", state="#text=4&share=100")
    assert texts(card(done)) == [TEXTS[3]] * 12
    assert "Is it &lt;i&gt;good&lt;/i&gt;?" in card(done)
    right_to_left = browse(page, "--dump-dom", state="#text=5&share=100")
    assert texts(card(right_to_left)) == [TEXTS[4]] * 12
    assert 'dir="auto"' in card(right_to_left)


def test_no_script_runs_but_the_page_s_own(browse, page, tmp_path):
    path = tmp_path / "injected.html"
    text = page.read_text(encoding="utf-8")
    path.write_text(text.replace("</main>", "<script>document.title = 'owned'</script></main>"), encoding="utf-8")
    done = browse(path, "--dump-dom")
    assert "<title>owned" not in done.stdout
    assert any("Content Security Policy" in line for line in complaints(done))
    assert texts(card(done))  # the page's own still does


@pytest.mark.parametrize(("share", "least", "most"), [(0, 0, 0), (10, 1, 2 * 12), (100, 3 * 12, 15 * 12)])
def test_the_share_of_tokens_shown(browse, page, share, least, most):
    shown = card(browse(page, "--dump-dom", state=f"#text=1&share={share}"))
    assert least <= shown.count("<mark") <= most
    assert texts(shown) == [TEXTS[0]] * 12


def test_the_top_token_is_the_one_with_the_highest_score(browse, page, kept):
    shown = card(browse(page, "--dump-dom", state="#text=1&share=1"))
    example = kept[1].texts[0]
    methods = [name for name in example.explanations if name not in CHANCE[1:]]  # random orders stand as one
    for method, copy in zip(methods, re.findall(r'<p class="words".*?</p>', shown), strict=True):
        scores = example.explanations[method].scores
        start, end = example.tokens[scores.index(max(scores))]
        marked = [unescape(re.sub(r"<[^>]+>", "", one)) for one in re.findall(r"<mark.*?</mark>", copy)]
        assert "".join(marked) == example.text[start:end]  # a rationale's end may cut it in two


@pytest.mark.parametrize(("show", "right"), [("right", True), ("wrong", False)])
def test_filters(browse, page, kept, show, right):
    wanted = [text for text in kept[1].texts if text.right is right and text.corpus == "tweets"]
    done = browse(page, "--dump-dom", state=f"#text=1&show={show}&corpus=1")
    assert wanted
    assert f">1 of {len(wanted)}<" in done.stdout
    assert f">{wanted[0].id}<" in card(done)


def test_the_most_disagreeing_come_first(browse, page, kept):
    first = max(kept[1].texts, key=lambda text: text.disagreement)
    assert f">{first.id}<" in card(browse(page, "--dump-dom", state="#text=1&show=disagreeing"))


def test_a_reader_s_path_through_the_texts(browse, page, tmp_path):
    script = """
      const seen = [], where = () => seen.push(document.getElementById("where").textContent);
      const key = (name, target = document.body) =>
        target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
      const set = (id, value) => {
        const node = document.getElementById(id);
        node.value = value;
        node.dispatchEvent(new Event("input", { bubbles: true }));
      };
      where();
      document.getElementById("next").click(); where();
      key("ArrowRight"); where();
      key("ArrowLeft"); key("ArrowLeft"); key("ArrowLeft"); where();
      key("ArrowRight", document.getElementById("share")); where();
      set("share", 0); seen.push(document.querySelectorAll("#card mark").length);
      set("share", 100); seen.push(document.querySelectorAll("#card mark").length > 0);
      set("corpus", "2"); where();
      seen.push(location.hash);
      return seen;
    """
    done = browse(driven(page, tmp_path, script), "--dump-dom")
    assert complaints(done) == []
    *steps, address = seen(done)
    assert steps == ["1 of 40", "2 of 40", "3 of 40", "1 of 40", "1 of 40", 0, True, "1 of 10"]
    assert address == "#text=1&share=100&show=all&corpus=2"


def test_methods_reorder_and_stand_out(browse, page, tmp_path):
    script = """
      const order = document.getElementById("order");
      order.value = [...order.options].findIndex((option) => option.textContent === "corr");
      order.dispatchEvent(new Event("change"));
      const last = [...document.querySelectorAll(".by-method")].map((group) => group.lastElementChild.dataset.m);
      document.querySelector(".ranking [data-focus]").focus();
      const on = document.querySelectorAll(".on").length, lit = document.body.classList.contains("lit");
      document.querySelector(".heat .cell").dispatchEvent(new Event("click"));
      return [[...new Set(last)], on, lit, document.querySelector(".told").textContent];
    """
    done = browse(driven(page, tmp_path, script), "--dump-dom")
    assert complaints(done) == []
    last, on, lit, told = seen(done)
    assert last == ["10"]  # attention, for which corr is undefined
    assert on > 20
    assert lit
    assert re.fullmatch(r"\S+, \S+: tau \S+, overlap \S+", told)


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(browse, page, tmp_path, width):
    text = POLICY.sub("", page.read_text(encoding="utf-8"))
    opened = text.replace("<details", "<details open")
    measure = "<script>document.title = document.documentElement.scrollWidth - innerWidth</script></body>"
    (tmp_path / "inner.html").write_text(opened.replace("</body>", measure), encoding="utf-8")
    outer = tmp_path / "outer.html"
    frame = f'<iframe id="f" style="width:{width}px;height:900px;border:0" src="inner.html"></iframe>'
    tell = "<script>onload = () => { document.body.dataset.seen = f.contentDocument.title }</script>"
    outer.write_text(f"<body>{frame}{tell}</body>")
    assert seen(browse(outer, "--dump-dom", "--allow-file-access-from-files")) <= 0


def test_it_prints(browse, tmp_path):
    page, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    few = ("lime", "occlusion", "attention", *CHANCE)
    metrics = (METRICS[0], METRICS[7])
    page.write_text(audit_page(*fake(few, metrics, ("tweets",), examples=8)), encoding="utf-8")
    browse(page, f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF")
    if (reader := shutil.which("pdftotext")) is None:
        pytest.skip("pdftotext is not installed; apt-get install poppler-utils to read what was printed")
    said = subprocess.run([reader, str(paper), "-"], capture_output=True, text=True, check=True).stdout
    said = " ".join(said.split())
    for closed in ("Who had been asked", "Paired tests on movies, corr", "The same as a table", "by ratio on tweets"):
        assert closed in said
    assert said.count("if ties lose") >= 2  # a table inside a closed section, of every corpus
    assert said.count("text-") >= 6  # the texts that follow the one on the screen
    for hint in ("Keys ←", "Order methods by", "Point at or tap", "Top tokens shown"):
        assert hint not in said
    assert re.search(r"Veridical audit.*1 of \d+", said)
