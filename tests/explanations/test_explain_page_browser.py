from __future__ import annotations

import re
from pathlib import Path

import pytest

import veridical
from browsing import browse, console
from tiny import TEXTS, tiny
from veridical.explanations.page import explain_page

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    clf = veridical.load(*tiny("bert"))
    clf.name = SCRIPT
    examples = [
        *(veridical.Example(f"{SCRIPT}{i}", text, i % 3) for i, text in enumerate((*TEXTS, SCRIPT))),
        veridical.Example("pair", "the <i>film</i>", None, context="<i>why</i>?"),
    ]
    found = veridical.explain(clf, examples, ["gradient", "occlusion"])
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(explain_page(found, model=SCRIPT, data=SCRIPT, target=SCRIPT), encoding="utf-8")
    return path


def test_the_browser_shows_the_page_without_a_complaint(page, tmp_path):
    done = browse(page, tmp_path, "--dump-dom")
    assert console(done) == []
    dom = done.stdout
    assert dom.count('class="method"') == 2 * (len(TEXTS) + 2)
    assert not re.search(r"<(script|img|i)\b", dom)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in dom


def test_a_complaint_would_be_noticed(tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text("<script>console.error('broken')</script>")
    assert console(browse(broken, tmp_path, "--dump-dom"))


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_window(page, tmp_path, width):
    # The page allows no scripts: a copy without that rule measures itself.
    text = page.read_text(encoding="utf-8")
    measured = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    frame = f'<iframe id="f" style="width:{width}px;height:900px;border:0" src="inner.html"></iframe>'
    measure = "<script>document.title=document.documentElement.scrollWidth-innerWidth</script></body>"
    (tmp_path / "inner.html").write_text(measured.replace("</body>", measure), encoding="utf-8")
    outer = tmp_path / "outer.html"
    tell = "<script>onload=()=>{document.body.dataset.over=f.contentDocument.title}</script>"
    outer.write_text(f"<body>{frame}{tell}</body>")
    done = browse(outer, tmp_path, "--dump-dom", "--allow-file-access-from-files")
    found = re.search(r'data-over="(-?\d+)"', done.stdout)
    assert found, done.stdout[:300]
    assert int(found[1]) <= 0


def test_a_picture_can_be_taken(page, tmp_path):
    picture = tmp_path / "page.png"
    browse(page, tmp_path, f"--screenshot={picture}", "--window-size=1200,900")
    assert picture.stat().st_size > 10_000


def test_the_page_needs_nothing_from_outside(page):
    text = page.read_text(encoding="utf-8")
    assert "http://" not in text
    assert "https://" not in text
    assert "<script" not in text
    assert "default-src 'none'" in text
