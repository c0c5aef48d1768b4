"""The playground's page in headless Chromium, driven as a reader would: mouse, keyboard, narrow window, the dark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stand_in import HOSTILE, LONG_NAME, LONGEST, STATIC, standing_in

from driving import Page, browser

pytestmark = pytest.mark.browser

DONE = "document.querySelectorAll('.curve').length >= 4 && document.querySelector('.leads')"
POSITIVE = "document.querySelector('.class:nth-child(2) .value').textContent"
STRIP = "document.querySelector('#strip').textContent"
CONTROLS = {"button", "textbox", "combobox", "slider", "checkbox", "radio", "link", "progressbar", "image"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with standing_in("bag") as address:
        yield address


@pytest.fixture(scope="module")
def window(tmp_path_factory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(window, server) -> Iterator[Page]:
    """The page with the first example on it; nothing may have been complained of at the end."""
    window.complaints.clear()
    window.sized(1280)
    window.dark(False)
    window.open("about:blank#")
    window.send("Page.navigate", url=server)
    window.until(f"location.href.startsWith('{server}') && {DONE}")
    yield window
    assert window.complaints == []


def put(page: Page, text: str) -> None:
    page.run("document.querySelector('#text').focus(); document.querySelector('#text').select()")
    page.write(text)


def test_typing_and_a_pause_show_what_model_and_methods_say(page):
    assert page.run(STRIP) == "a warm and funny film"
    put(page, "a dull film")
    page.until(f"{STRIP} === 'a dull film' && {DONE}")
    assert page.run("document.querySelector('.said').textContent").startswith("negative")
    assert page.run("document.querySelector('[data-method=occlusion] mark.for').textContent") == "dull"


def test_a_legend_is_true_of_its_method(page):
    legends = "[card.dataset.method, card.querySelector('.legend').textContent]"
    said = page.run(f"Object.fromEntries([...document.querySelectorAll('.method')].map((card) => {legends}))")
    assert "speaks for positive" in said["occlusion"]
    assert "for" not in said["attention"].split()
    assert page.run("document.querySelectorAll('[data-method=attention] .words mark:not(.matters)').length") == 0
    assert page.run("document.querySelector('[data-method=occlusion] .badge').textContent") == "✓ believe"
    assert "came first" in page.run("document.querySelector('[data-method=occlusion] .found').textContent")


def test_clicked_words_go_and_the_whole_text_stays_as_a_ghost(page):
    before = page.run(POSITIVE)
    page.click("#strip .unit:nth-of-type(2)")
    page.until(f"{POSITIVE} !== {before!r}")
    assert page.run("document.querySelector('.class:nth-child(2) .delta').textContent").endswith(
        f"{before} with the whole text"
    )
    assert (
        page.run("[...document.querySelectorAll('.words .gone')].map((node) => node.textContent).join()") == "warm,warm"
    )
    page.until("document.querySelector('.moved')")
    assert "occlusion and attention" not in page.run("document.querySelector('.verdict').textContent")
    assert "1 of 1" in page.run("document.querySelector('.leads tbody tr').textContent")
    page.click("#back")
    page.until(f"{POSITIVE} === {before!r}")


def test_nothing_is_told_of_erased_words_before_the_answer_is_there(page):
    held = "new Promise((done) => { window.release = () => done(ask(url, how)); })"
    page.run(
        f"((ask) => {{ window.fetch = (url, how) => `${{url}}`.includes('predict') ? {held} : ask(url, how) }})(fetch)"
    )
    page.click("#strip .unit:nth-of-type(2)")
    page.until("window.release && document.querySelectorAll('#strip .gone').length === 1")
    page.click("#level label:nth-of-type(2)")  # the curves come anew, and the table is drawn of them
    page.until(f"location.hash.includes('l=token') || {DONE}")
    page.until("document.querySelector('.leads td.hits')")
    assert page.run("document.querySelector('.moved')") is None
    page.run("release()")
    page.until("document.querySelector('.moved')")
    assert "went from" in page.run("document.querySelector('.moved').textContent")


def test_a_drag_marks_all_on_its_way_and_keep_only_turns_it_round(page):
    page.click("#strip .unit:nth-of-type(2)", to="#strip .unit:nth-of-type(3)")
    page.until("document.querySelectorAll('#strip .gone').length === 2")
    page.click("#mode label:nth-of-type(2)")
    page.until("document.querySelectorAll('#strip .gone').length === 3")
    assert page.run("document.querySelectorAll('#strip .kept').length") == 2


def test_the_slider_erases_the_top_of_its_method(page):
    script = "top.value = 2; top.dispatchEvent(new Event('input'))"
    page.run(f"((top) => {{ {script} }})(document.getElementById('top-occlusion'))")
    page.until("document.querySelectorAll('#strip .gone').length === 2")
    assert (
        page.run("[...document.querySelectorAll('#strip .gone')].map((node) => node.textContent).join()")
        == "warm,funny"
    )
    page.until("document.querySelector('[data-method=occlusion] output').textContent === '2 of 5'")


def test_the_keyboard_is_enough(page):
    page.run("document.querySelector('#text').focus()")
    for _ in range(12):
        page.key("Tab")
        if page.run("document.activeElement.classList.contains('unit')"):
            break
    page.key("ArrowRight")
    assert page.run("document.activeElement.textContent") == "warm"
    page.key(" ")
    page.until("document.activeElement.getAttribute('aria-pressed') === 'true'")
    page.key("ArrowRight", shift=True)
    page.until("document.querySelectorAll('#strip .gone').length === 2")


def test_an_address_restores_what_was_shown(page, server):
    put(page, "never dull, warm 😀 & so=on")
    page.until(f"{STRIP} === 'never dull, warm 😀 & so=on' && {DONE}")
    page.click("#strip .unit:nth-of-type(3)")
    page.click("#level label:nth-of-type(2)")
    page.until("location.hash.includes('e=3') && location.hash.includes('l=token')")
    address = page.run("location.href")
    page.send("Page.navigate", url="about:blank")
    page.until("location.href === 'about:blank'")
    page.send("Page.navigate", url=address)
    page.until(f"location.href.startsWith('{server}') && {DONE}")
    assert page.run("document.querySelector('#text').value") == "never dull, warm 😀 & so=on"
    page.until("document.querySelector('#strip .gone')?.textContent === 'warm'")
    assert page.run("document.querySelector('input[name=level]:checked').value") == "token"
    assert page.run("document.querySelector('.delta').textContent")


def test_examples_are_turned_over_and_opened(page):
    page.click("#to-examples")
    page.until("document.querySelectorAll('.example').length === 20")
    page.click("#next")
    page.until("document.querySelector('#where').textContent === '21 to 40 of 43'")
    page.click("#previous")
    page.until("document.querySelector('#where').textContent === '1 to 20 of 43'")
    page.click("li:nth-child(3) .example")
    page.until(f"{STRIP}.startsWith('<img') && {DONE}")
    assert page.run(STRIP) == HOSTILE
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.run("document.title") == "Veridical playground"


def test_work_under_way_is_shown(page):
    page.click("#to-watch")
    page.until("document.querySelector('.folder')")
    seen = page.run("document.querySelector('.folder').textContent")
    assert "24 of 96 done, about 5 min left" in seen
    assert "0.8313" in seen
    assert page.run("document.querySelector('.links a').getAttribute('href')") == "watched/key/report.html"


@pytest.mark.parametrize("view", ["play", "examples", "watch"])
def test_nothing_is_wider_than_a_phone(page, view):
    page.sized(360)
    page.click(f"#to-{view}")
    page.until(f"!document.querySelector('#{view}').hidden")
    assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_dark_is_dark(page):
    light = page.run("getComputedStyle(document.body).backgroundColor")
    page.dark(True)
    dark = page.run("getComputedStyle(document.body).backgroundColor")
    assert light == "rgb(252, 252, 251)"
    assert dark == "rgb(19, 20, 25)"


def test_every_control_has_a_name(page):
    page.run("document.querySelector('#picker').open = true")
    controls = [node for node in page.heard() if node["role"] in CONTROLS]
    assert {"button", "textbox", "combobox", "slider", "checkbox", "radio", "link", "image"} <= {
        c["role"] for c in controls
    }
    assert [control for control in controls if not control["name"].strip()] == []


def test_a_refusal_stands_where_it_belongs(page):
    put(page, "x" * (LONGEST + 1))
    page.until("!document.querySelector('#text-error').hidden")
    assert f"{LONGEST} are the most" in page.run("document.querySelector('#text-error').textContent")
    # What was shown before is dimmed, also the table: it is of another text. Nothing was asked, so nothing complains.
    for part in ("told", "cards", "strip"):
        page.until(f"getComputedStyle(document.querySelector('#{part}')).opacity === '0.45'")


def test_what_was_typed_survives_a_quick_look_elsewhere(page):
    put(page, "a dull film")
    page.run("document.querySelector('#to-examples').click()")  # within the pause
    page.until("document.querySelectorAll('.example').length === 20")
    page.click("#to-play")
    page.until(f"{STRIP} === 'a dull film'")
    assert page.run("document.querySelector('#text').value") == "a dull film"


def test_no_methods_is_a_choice_that_stays(page, server):
    page.run("document.querySelector('#picker').open = true")
    for _ in range(2):
        page.run("document.querySelector('#choices input:checked').click()")
    page.until("document.querySelectorAll('.method').length === 0 && location.hash.includes('x=')")
    address = page.run("location.href")
    page.send("Page.navigate", url="about:blank")
    page.until("location.href === 'about:blank'")
    page.send("Page.navigate", url=address)
    page.until(f"location.href.startsWith('{server}') && document.querySelector('#strip .unit')")
    assert page.run("document.querySelector('#picked').textContent") == "Methods: 0 of 3 chosen"


def test_every_slider_names_its_method(page):
    names = [control["name"] for control in page.heard() if control["role"] == "slider"]
    assert len(names) == len(set(names)) == 2
    assert any("occlusion" in name for name in names)


def test_disagreement_is_not_asked_of_data_and_an_order_that_is_worked_out_says_how_far_it_is(page):
    page.click("#to-examples")
    page.until("document.querySelectorAll('.example').length === 20")
    assert page.run("document.querySelector('#sort [value=disagreeing]').disabled")
    page.run(
        "((sort) => { sort.value = 'wrong'; sort.dispatchEvent(new Event('change')) })(document.querySelector('#sort'))"
    )
    page.until("document.querySelector('#where').textContent.includes('5 of 43 texts read so far')")
    page.until("document.querySelector('#where').textContent === '1 to 20 of 43'")  # asked again by itself


def test_a_long_verdict_leaves_its_label_room(page):
    page.click("#to-watch")
    page.until("document.querySelector('.figures')")
    lines = "((range, node) => (range.selectNodeContents(node), range.getClientRects().length))"
    label = "[...document.querySelectorAll('.figures dt')].at(-1)"
    assert page.run(f"{label}.textContent") == "verdict"
    assert page.run(f"{lines}(document.createRange(), {label})") == 1


def test_a_page_that_another_site_led_to_waits(window, server):
    window.complaints.clear()
    window.send("Page.navigate", url=f"{server}?waits=1#t=a+dull+film")
    window.until("document.querySelector('#waits') && !document.querySelector('#waits').hidden")
    assert window.run("document.querySelector('#text').value") == "a dull film"
    assert (
        window.run("performance.getEntriesByType('resource').filter((one) => one.name.includes('/api/')).length") == 0
    )
    window.click("#explain-now")
    window.until(f"{STRIP} === 'a dull film' && {DONE}")
    assert window.run("document.querySelector('#waits').hidden")
    assert window.complaints == []


def test_a_class_that_only_one_model_has_is_explained_of_that_one(window):
    with standing_in("other classes", "bag") as address:
        window.complaints.clear()
        window.sized(360)
        window.send("Page.navigate", url=address)
        window.until(f"location.href.startsWith('{address}') && document.querySelectorAll('.agreement').length === 2")
        choose = f"(pick) => {{ pick.value = '{LONG_NAME}'; pick.dispatchEvent(new Event('change')) }}"
        window.run(f"({choose})(document.querySelector('#target'))")
        window.until("document.querySelector('[data-method=occlusion] .note')")
        assert "has no class" in window.run("document.querySelector('[data-method=occlusion] .note').textContent")
        window.until("document.querySelectorAll('.waiting').length === 0")
        assert window.run("document.documentElement.scrollWidth - innerWidth") <= 0
        assert window.complaints == []
        window.sized(1280)
        window.send("Page.navigate", url="about:blank")
        window.until("location.href === 'about:blank'")


def test_two_models_stand_side_by_side(window):
    with standing_in("bag", "contrary") as address:
        window.complaints.clear()
        window.send("Page.navigate", url=address)
        window.until(f"location.href.startsWith('{address}') && document.querySelectorAll('.agreement').length === 2")
        assert window.run("document.querySelector('.differ').textContent").startswith(
            "They differ: positive and negative."
        )
        assert "rank correlation −0.25" in window.run("document.querySelector('.agreement').textContent")
        assert window.run("document.querySelectorAll('[data-method=occlusion] .side .words').length") == 2
        window.click("#strip .unit:nth-of-type(2)")
        window.until("[...document.querySelectorAll('.model')].every((one) => one.querySelector('.delta').textContent)")
        assert window.complaints == []
        window.send("Page.navigate", url="about:blank")
        window.until("location.href === 'about:blank'")


def test_a_server_that_is_gone_is_said_to_be(window):
    with standing_in("bag", counting=True) as address:
        window.send("Page.navigate", url=address)
        window.until(f"location.href.startsWith('{address}') && {DONE}")
        window.complaints.clear()
    lost = "performance.getEntriesByType('resource').filter((one) => one.name.includes('api/methods')).length"
    window.until(f"{lost} > 1")  # what methods take was asked for again, and nobody answered
    assert not [complaint for complaint in window.complaints if "Uncaught" in complaint or "exceptionId" in complaint]
    put(window, "a dull film")
    window.until("!document.querySelector('#banner').hidden")
    assert "does not answer" in window.run("document.querySelector('#banner').textContent")


def test_only_the_token_opens_the_frame_and_only_cookies_the_page(window):
    pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
    import veridical
    from playground.house import classifier

    playground = veridical.serve(classifier(), port=0)
    text = "t=a+good+film"
    banner, strip = "document.querySelector('#banner:not([hidden])')", "document.querySelector('#erase:not([hidden])')"
    try:
        window.send("Page.navigate", url=f"{playground.url}#{text}")
        window.until(f"location.pathname === '/' && location.search === '' && {strip}")  # at once: nobody led here
        window.send("Page.navigate", url=f"{playground.address}/embed#{text}")
        window.until(f"location.pathname === '/embed' && {banner}")  # though the browser has the cookie
        assert "no valid token" in window.run("document.querySelector('#banner').textContent")
        window.send("Page.navigate", url="about:blank")
        window.until("location.href === 'about:blank'")
        window.send("Page.navigate", url=f"{playground.address}/embed#token={playground.token}&{text}")
        window.until(f"location.pathname === '/embed' && {strip}")
        # Another port of this machine is the same site: its link brings the cookie along, and asks for nothing.
        with standing_in("bag") as elsewhere:
            window.send("Page.navigate", url=elsewhere)
            window.until(f"location.href.startsWith('{elsewhere}') && document.readyState === 'complete'")
            window.run(f"void (location.href = '{playground.address}/#{text}')")
            window.until(f"location.port === '{playground.port}' && document.querySelector('#waits:not([hidden])')")
        assert window.run("document.querySelector('#text').value") == "a good film"
        window.click("#explain-now")
        window.until(strip)
    finally:
        playground.stop()
        window.send("Page.navigate", url="about:blank")
        window.complaints.clear()


def test_the_page_writes_no_markup_and_fetches_nothing_from_elsewhere():
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not any(
            word in text for word in ("innerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=")
        )
        assert not any(scheme in text for scheme in ("http://", "https://")), path.name
