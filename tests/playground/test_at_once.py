"""Several requests at once: what nobody wants stops between two passes, and nobody waits behind a long one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

import httpx

import veridical
from playground.house import TEXT, classifier, lines_of, opened
from veridical.model.classifier import Classifier
from veridical.model.interruption import between_passes
from veridical.playground.answering import Answering

SLOW = "integrated_gradients:steps=400"
PATIENCE = 60.0


@pytest.fixture
def counted(monkeypatch):
    """Passes of the models that explain, with a valve: none goes through while it is shut."""
    valve, passes = threading.Event(), []
    valve.set()
    forward = Classifier.forward

    def watched(self: Classifier, *given: Any, **more: Any) -> Any:
        if threading.current_thread().name.startswith("veridical-explaining"):
            passes.append(self.name)
            assert valve.wait(PATIENCE)
        return forward(self, *given, **more)

    monkeypatch.setattr(Classifier, "forward", watched)
    return valve, passes


def until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


def quiet(house: Any) -> None:
    """Wait until all that methods cost has been counted."""
    until(lambda: house.explaining.idle)


def asked(**more: Any) -> dict[str, Any]:
    return {"model": "one", "text": TEXT, "methods": [SLOW], "session": "s", **more}


def in_background(client: Any, ask: dict[str, Any], path: str = "/api/explain") -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(lines_of(client.post(path, json=ask))), daemon=True)
    thread.start()
    return thread, found


def test_a_new_request_of_the_session_stops_the_old_one_between_passes(counted):
    valve, passes = counted
    with opened(classifier(), budget=64) as (house, client):  # a few copies of the text in a pass
        quiet(house)
        passes.clear()
        valve.clear()
        old, found = in_background(client, asked())
        until(lambda: passes)  # it is in its first pass
        new, second = in_background(client, asked(methods=["attention"]))
        until(lambda: sum(not job.wanted for job in house._jobs) == 1)
        valve.set()
        old.join(PATIENCE)
        new.join(PATIENCE)
    assert found == [{"cancelled": True}]
    assert [line.get("method") for line in second] == ["attention", None]
    assert len(passes) == 2  # the one that was under way, and that of the new request


def test_another_session_and_another_model_are_left_alone():
    with opened(classifier(), classifier("bert", "two", seed=1)) as (_, client):
        threads = [
            in_background(client, asked(methods=["attention", "occlusion"], **other))
            for other in ({}, {"session": "t"}, {"model": "two"})
        ]
        for thread, _ in threads:
            thread.join(PATIENCE)
    assert all(found[-1].get("done") and len(found) == 3 for _, found in threads)


def test_a_prediction_does_not_wait_for_an_explanation(counted):
    valve, passes = counted
    with opened(classifier()) as (house, client):
        quiet(house)
        alone = client.post("/api/predict", json={"model": "one", "text": TEXT}).json()
        passes.clear()
        valve.clear()
        thread, found = in_background(client, asked(methods=["attnlrp", "deeplift"]))
        until(lambda: passes)  # an explanation is inside the model, with its hooks in place
        beside = client.post("/api/predict", json={"model": "one", "text": TEXT}).json()
        assert not found
        valve.set()
        thread.join(PATIENCE)
    assert beside == alone


def test_who_closes_the_connection_stops_the_work(counted):
    valve, passes = counted
    playground = veridical.serve(classifier(), port=0, budget=64)
    try:
        quiet(playground.house)
        passes.clear()
        valve.clear()
        headers = {"authorization": f"Bearer {playground.token}"}
        with httpx.Client(base_url=playground.address, headers=headers, timeout=PATIENCE) as client:
            with client.stream("POST", "/api/explain", json=asked()):
                until(lambda: passes)
            until(lambda: all(not job.wanted for job in playground.house._jobs))
            valve.set()
            until(lambda: not playground.house.explaining._tasks)
            assert len(passes) == 1
            assert client.get("/api/info").status_code == 200  # and the server goes on
    finally:
        valve.set()
        playground.stop()
    assert not playground._thread.is_alive()


def test_a_request_has_its_time(counted):
    valve, passes = counted
    with opened(classifier(), seconds=0.2, budget=64) as (house, client):
        quiet(house)
        valve.clear()
        passes.clear()
        thread, found = in_background(client, asked(methods=["attention", SLOW]))
        until(lambda: passes)
        time.sleep(0.25)
        valve.set()
        thread.join(PATIENCE)
    late = [line for line in found if "error" in line]
    assert [line["error"]["code"] for line in late] == ["too_slow", "too_slow"]  # the first before its first pass
    assert "0.2 seconds" in late[0]["error"]["message"]


def test_the_queue_is_bounded(counted):
    valve, _ = counted
    with opened(classifier(), queue=2) as (house, client):
        quiet(house)
        valve.clear()
        threads = [in_background(client, asked(session=name)) for name in "ab"]
        until(lambda: len(house._jobs) == 2)
        answer = client.post("/api/explain", json=asked(session="c"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "busy")
        # Predictions have a queue of their own.
        assert client.post("/api/predict", json={"model": "one", "text": TEXT}).status_code == 200
        for job in house._jobs:
            job.withdraw()
        valve.set()
        for thread, _ in threads:
            thread.join(PATIENCE)
        assert client.post("/api/predict", json={"model": "one", "text": TEXT}).status_code == 200


class Told:
    """A job without an event loop."""

    def __init__(self):
        self.passes, self.ended, self.wanted = 0.0, threading.Event(), True

    def check(self):
        pass

    def end(self, outcome=None):
        self.outcome = outcome
        self.ended.set()


def test_questions_of_several_requests_share_a_batch(monkeypatch):
    from veridical.playground import answering as module
    from veridical.playground.erasing import predicted
    from veridical.playground.served import served

    (model,) = served([classifier()])
    sizes = []
    own = module.answer
    monkeypatch.setattr(
        module, "answer", lambda clf, variants, budget: sizes.append(len(variants)) or own(clf, variants, budget)
    )
    thread, jobs = Answering(), [Told() for _ in range(4)]
    for place, job in enumerate(jobs):  # before it starts, so that all of them wait together
        thread.submit(job, model.answers, predicted(model, TEXT, None, erased=[place + 1]))
    wrong = Told()
    thread.submit(wrong, model.answers, predicted(model, TEXT, None, erased=[10_000]))
    thread.start()
    for job in (*jobs, wrong):
        assert job.ended.wait(PATIENCE)
    thread.stop()
    thread.join(PATIENCE)
    assert sizes == [4]
    assert len({json.dumps(job.outcome) for job in jobs}) == 4
    assert wrong.outcome.status == 422  # which spoilt it for nobody


def test_a_question_before_every_pass_and_the_model_as_it_was():
    clf = classifier()
    veridical.explain(clf, TEXT, "attention")  # transformers has hooks of its own, which stay from the first time on
    before = {name: (dict(module._forward_hooks), module.training) for name, module in clf.model.named_modules()}
    count = 0

    class EnoughError(Exception):
        pass

    def check():
        nonlocal count
        count += 1
        if count > 2:
            raise EnoughError

    for method in ("deeplift", "attnlrp", "occlusion", "smoothgrad", "decompx"):
        count = 0
        try:
            with between_passes(check):
                veridical.explain(clf, TEXT, method, budget=40)
        except EnoughError:
            assert count == 3
        after = {name: (dict(module._forward_hooks), module.training) for name, module in clf.model.named_modules()}
        assert after == before
    (again,) = veridical.explain(clf, TEXT, "deeplift")
    (fresh,) = veridical.explain(classifier(), TEXT, "deeplift")
    assert np.array_equal(again.scores, fresh.scores)
