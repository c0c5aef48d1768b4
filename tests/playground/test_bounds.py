"""What one request or one client may take: bounded before it begins, and given back whatever happens."""

from __future__ import annotations

import copy
import threading
import time
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

import veridical
from playground.house import TEXT, classifier, lines_of, opened
from playground.test_at_once import PATIENCE, counted, in_background, quiet, until
from tiny import tiny
from toy import toy
from veridical.attribution import methods as known
from veridical.core import hearing
from veridical.core.errors import Caution
from veridical.core.hearing import heard
from veridical.model.classifier import Classifier
from veridical.playground import browsing, limits
from veridical.playground.answering import Answering
from veridical.playground.bounding import Size, planned, too_much
from veridical.playground.erasing import curves, sizes_of
from veridical.playground.explaining import Explaining
from veridical.playground.job import Who
from veridical.playground.methods import Costs
from veridical.playground.problem import ProblemError
from veridical.playground.served import served

__all__ = ["counted"]
ASK = {"model": "one", "text": TEXT}


@pytest.fixture(scope="module")
def house():
    with opened(classifier()) as opening:
        yield opening


def test_refused_requests_take_no_place(house):
    client = house[1]
    wrong = {**ASK, "scores": {"m": [1.0]}, "target": "nonsense"}
    for path, ask in (
        ("/api/curves", wrong),
        ("/api/explain", {**ASK, "methods": ["attention"], "target": "nonsense"}),
        ("/api/explain", {**ASK, "methods": ["nonsense"]}),
        ("/api/export", {**ASK, "methods": ["attention"], "contrast": "nonsense", "format": "html"}),
        ("/api/agreement", {**ASK, "other": "nonsense", "methods": ["attention"]}),
        ("/api/predict", {**ASK, "erased": [40_000]}),
    ):
        for _ in range(limits.QUEUE + 1):
            assert client.post(path, json=ask).status_code in (404, 422)
    assert client.post("/api/predict", json=ASK).status_code == 200
    assert lines_of(client.post("/api/explain", json={**ASK, "methods": ["attention"]}))[-1]["done"]


def test_what_should_have_ended_long_ago_takes_no_place(counted):
    valve, passes = counted
    with opened(classifier(), queue=1, seconds=0.2) as (house, client):
        quiet(house)
        passes.clear()
        valve.clear()
        thread, _ = in_background(client, {**ASK, "methods": ["occlusion"]})
        until(lambda: passes)
        time.sleep(0.3)
        assert not [job for job in house._jobs if job.counts]
        valve.set()
        thread.join(PATIENCE)


@pytest.mark.parametrize(
    "spec",
    [
        "lime:samples=1000000",
        "kernel_shap:samples=20000",
        "smoothgrad:samples=100000",
        "integrated_gradients:steps=5000",
        "alti:memory=100",
    ],
)
def test_options_are_bounded_before_anything_is_drawn(house, spec):
    answer = house[1].post("/api/explain", json={**ASK, "methods": [spec]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_much")
    assert spec.split(":")[0] in answer.json()["error"]["message"]
    both = lines_of(house[1].post("/api/explain", json={**ASK, "methods": [spec, "attention"]}))
    assert both[0]["method"].split(":")[0] == spec.split(":")[0]
    assert [line.get("method") for line in both[1:]] == ["attention", None]  # which is explained all the same
    assert both[0]["error"]["code"] == "too_much"
    file = house[1].post("/api/export", json={**ASK, "methods": [spec, "attention"], "format": "json"})
    assert file.status_code == 413


def test_long_texts_are_too_much_for_methods_that_ask():
    clf = classifier("bilstm", "lstm")
    clf.limit = 10_000
    with opened(clf) as (_, client):
        text = "good film " * 1500  # which this model reads in one piece
        answer = client.post("/api/explain", json={"text": text, "methods": ["kernel_shap"]})
        assert answer.status_code == 413
        assert f"{limits.ASKED:,} tokens" in answer.json()["error"]["message"]
        assert lines_of(client.post("/api/explain", json={"text": text, "methods": ["gradient"]}))[-1]["done"]


def test_work_is_passes_times_tokens():
    costs, size = Costs(passes={"decompx": 22.0, "attention": 1.0}), Size(words=300, tokens=400, longest=400)
    specs = ["attention", "decompx", "integrated_gradients:steps=10", "occlusion", "lime:samples=100"]
    work = {each.choice.label: each.work for each in planned(map(known.choose, specs), costs, size)}
    assert work["attention"] == 400
    assert work["integrated_gradients:steps=10"] == 31 * 400
    assert work["lime:samples=100"] == 101 * 400
    assert work["occlusion"] == 401 * 400
    assert work["decompx"] == pytest.approx(22 * 400 / 30 * 400)
    (dear,) = planned([known.choose("occlusion")], costs, size)
    assert too_much(dear, size) is None
    assert too_much(replace(dear, work=limits.WORK + 1), size).status == 413


def test_pages_are_bounded_and_written_beside_the_loop(house, monkeypatch):
    from veridical.playground import exporting

    threads = []
    written = exporting.written
    monkeypatch.setattr(
        exporting, "written", lambda *given: threads.append(threading.current_thread()) or written(*given)
    )
    loops = [thread for thread in threading.enumerate() if "Any" in thread.name]
    ask = {**ASK, "methods": ["attention"], "format": "html"}
    assert house[1].post("/api/export", json=ask).status_code == 200
    assert threads
    assert threads[0] not in loops
    assert "worker" in threads[0].name.lower()
    monkeypatch.setattr("veridical.playground.bounding.EXPORTED", 5)
    answer = house[1].post("/api/export", json=ask)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_wide")
    assert house[1].post("/api/export", json={**ask, "format": "json"}).status_code == 200


def test_all_scores_together_are_bounded(house):
    scores = {f"m{place}": [0.5] * 30_000 for place in range(4)}
    answer = house[1].post("/api/curves", json={**ASK, "scores": scores})
    assert answer.status_code == 413
    assert f"{limits.SCORES:,} scores" in answer.json()["error"]["message"]


def test_quick_methods_do_not_wait_for_a_dear_one(counted):
    valve, passes = counted
    with opened(classifier(), budget=64) as (house, client):
        quiet(house)
        passes.clear()
        valve.clear()
        dear, _ = in_background(client, {**ASK, "methods": ["integrated_gradients:steps=400"], "session": "a"})
        until(lambda: passes)  # inside the model, and stays there
        quick, found = in_background(client, {**ASK, "methods": ["random", "occlusion"], "session": "b"})
        until(lambda: len(passes) == 2)  # the pass of another thread
        assert not house.explaining._tasks[0].job.over
        valve.set()
        dear.join(PATIENCE)
        quick.join(PATIENCE)
    assert [line.get("method") for line in found] == ["random", "occlusion", None]


def test_a_long_step_ends_where_others_wait(counted, monkeypatch):
    valve, passes = counted
    monkeypatch.setattr("veridical.playground.explaining.STEP", 0.05)
    with opened(classifier(), budget=64) as (house, client):
        quiet(house)
        passes.clear()
        valve.clear()
        asks = [
            {**ASK, "methods": [f"integrated_gradients:steps={steps}"], "session": str(steps)} for steps in (200, 100)
        ]
        threads = [in_background(client, ask) for ask in asks]
        until(lambda: passes and len(house.explaining._tasks) == 2)
        time.sleep(0.1)
        valve.set()
        for thread, _ in threads:
            thread.join(PATIENCE)
    errors = [line["error"] for _, found in threads for line in found if "error" in line]
    assert errors[0]["code"] == "too_slow"
    assert "Others wait" in errors[0]["message"]


def test_one_address_and_one_session_have_a_share():
    with opened(classifier()) as (house, client):

        async def places(count, **more):
            for place in range(count):
                who = Who(more.get("peer", "far"), more.get("session", str(place)))
                house._job(who, house._jobs, house.queue)

        portal = client.portal
        with pytest.raises(ProblemError, match="this session"):
            portal.call(lambda: places(limits.SESSION + 1, session="same"))
        with pytest.raises(ProblemError, match="from your address"):
            portal.call(lambda: places(limits.QUEUE))
        assert len(house._jobs) < limits.QUEUE
        done = lines_of(client.post("/api/explain", json={**ASK, "methods": ["attention"]}))  # of another address
        assert done[-1]["done"]


def test_curves_are_asked_an_order_at_a_time(monkeypatch):
    from playground.test_at_once import Told
    from veridical.playground import answering as module

    (model,) = served([classifier()])
    text = " ".join([TEXT] * 12)
    clf = model.answers
    job = Told()
    job.tell = lambda line: None
    from veridical.playground.text import read

    held = read(clf, text)
    asker = curves(model, text, None, {"m": [0.1] * len(held.whole.ids)}, job)
    sizes, thread = [], Answering()
    own = module._Task.advance

    def watched(self, reply):
        more = own(self, reply)
        sizes.append(len(self.asked))
        return more

    monkeypatch.setattr(module._Task, "advance", watched)
    thread.submit(job, clf, asker)
    thread.start()
    assert job.ended.wait(PATIENCE)
    thread.stop()
    thread.join(PATIENCE)
    points = len(sizes_of(1000, len(held.windows)))
    assert points < len(sizes_of(1000))  # fewer where each takes several questions
    assert max(sizes) == 2 * points * len(held.windows)
    assert sizes.count(max(sizes)) >= 1 + limits.ORDERS


def test_predictions_of_a_split_are_worked_out_once_and_told_so_far(monkeypatch):
    valve, asked = threading.Event(), []
    own = browsing._rows

    def slow(model, examples):
        asked.append(len(examples))
        if len(asked) > 1:
            assert valve.wait(PATIENCE)
        return (yield from own(model, examples))

    monkeypatch.setattr(browsing, "_rows", slow)
    monkeypatch.setattr(browsing, "AT_ONCE", 4)
    monkeypatch.setattr(browsing, "PATIENCE", 0.3)
    with opened(classifier(), data=toy(train=2, classes=3)) as (_, client):
        ask = {"sort": "confident", "limit": 100}
        first = client.get("/api/examples", params=ask).json()
        assert (first["read"], first["of"], first["total"]) == (4, 16, 4)
        again = client.get("/api/examples", params=ask).json()
        assert again["read"] == 4
        valve.set()
        until(lambda: client.get("/api/examples", params=ask).json()["read"] == 16)
    assert asked == [4, 4, 4, 4]


def test_every_method_says_what_explain_says():
    with opened(classifier()) as (house, client):
        quiet(house)
        names = [spec for spec in (method.name for method in known) if spec not in house.costs["one"].refused]
        assert {"lime", "kernel_shap", "smoothgrad"} <= set(names)
        *lines, last = lines_of(client.post("/api/explain", json={**ASK, "methods": names[:24]}))
        if len(names) > 24:
            lines += lines_of(client.post("/api/explain", json={**ASK, "methods": names[24:]}))[:-1]
    assert last["done"]
    clf = classifier()
    for line in lines:
        (own,) = veridical.explain(clf, TEXT, line["method"])
        assert line["scores"] == pytest.approx(own.scores.tolist(), abs=1e-5), line["method"]


def test_a_class_may_be_named_gold_and_a_model_left_out():
    model, tokenizer = copy.deepcopy(tiny("bert"))
    model.config.id2label = {0: "gold", 1: "b", 2: "c"}
    named = Classifier(model, tokenizer, name="one")
    ask = {"text": TEXT, "methods": ["occlusion"], "target": "gold"}
    with opened(named) as (_, client):
        line, _ = lines_of(client.post("/api/explain", json=ask))
        assert line["target_name"] == "gold"
        answer = client.post("/api/explain", json={**ask, "target": "nonsense"})
        assert answer.json()["error"]["message"].endswith("allowed: predicted, 0 (gold), 1 (b), 2 (c).")
    with opened(classifier(), classifier("bert", "two", seed=1)) as (_, client):
        answer = client.post("/api/predict", json={"text": TEXT})
        assert (answer.status_code, answer.json()["error"]["message"]) == (
            422,
            "model is missing; name one of: one, two.",
        )


def test_turns_go_by_address_then_by_request():
    thread = Explaining()
    for peer, spent in (("near", 1.0), ("near", 1.0), ("near", 0.5), ("far", 2.0)):
        thread.submit(SimpleNamespace(who=Who(peer)), iter(()))
        thread._tasks[-1].spent = spent
    assert thread._next() is thread._tasks[3]  # whose address had less, though each of the other requests had less
    thread._tasks[3].spent = 3.0
    assert thread._next() is thread._tasks[2]


def test_warnings_are_heard_by_the_thread_that_they_are_of():
    heard_by, both = {}, threading.Barrier(2, timeout=PATIENCE)

    def listen(name):
        with heard() as notes:
            both.wait()
            warnings.warn(f"of {name}", Caution, stacklevel=1)
            both.wait()
        heard_by[name] = notes

    until(lambda: not hearing._notes)  # a server of another test may be at its last pass
    before = warnings.showwarning
    threads = [threading.Thread(target=listen, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert heard_by == {"a": ["of a"], "b": ["of b"]}
    assert warnings.showwarning is before
