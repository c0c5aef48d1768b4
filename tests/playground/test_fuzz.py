"""Requests made up from the API's own description, and hostile ones by hand: none breaks the server."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from hypothesis import HealthCheck, settings

from playground.house import TEXT, TOKEN, classifier, opened
from toy import toy
from veridical.playground.app import application
from veridical.playground.limits import CHARACTERS, METHODS

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

BODIES = {
    "no JSON": b"{",
    "no object": b"[]",
    "not UTF-8": b'{"text": "\xff"}',
    "half a character": b'{"model": "one", "text": "\\ud800"}',
    "too deep": b"[" * 100_000,
    "many digits": b'{"model": "one", "text": "a", "erased": [' + b"9" * 5000 + b"]}",
    "not a number": b'{"model": "one", "text": "a", "erased": [NaN]}',
    "below 0": b'{"model": "one", "text": "good", "erased": [-1]}',
    "far above": b'{"model": "one", "text": "good", "erased": [40000]}',
    "a special token": b'{"model": "one", "text": "good", "erased": [0]}',
    "both": b'{"model": "one", "text": "good", "erased": [1], "kept": [1]}',
    "a text for a number": b'{"model": "one", "text": "good", "erased": ["1"]}',
    "an unknown field": b'{"model": "one", "text": "good", "path": "/etc/passwd"}',
    "another operator": b'{"model": "one", "text": "good", "operator": "zero_id_attended"}',
    "no text": b'{"model": "one", "text": "  \\n"}',
    "nothing that a tokenizer reads": b'{"model": "one", "text": "\\u0000"}',
    "another model": b'{"model": "/etc/passwd", "text": "good"}',
    "too many characters": json.dumps({"model": "one", "text": "a" * (CHARACTERS + 1)}).encode(),
    "too many windows": json.dumps({"model": "one", "text": "a " * (CHARACTERS // 2)}).encode(),
    "a long context": json.dumps({"model": "one", "text": "good", "context": "a " * 500}).encode(),
}


@pytest.fixture(scope="module")
def house():
    data = toy(train=1, dev=1, test=3, classes=3)
    with opened(classifier(), classifier("bert", "two", seed=1), data=data, seconds=2.0) as opening:
        yield opening


@pytest.mark.parametrize("what", BODIES)
def test_a_hostile_body_is_one_sentence(house, what):
    answer = house[1].post("/api/predict", content=BODIES[what], headers={"content-type": "application/json"})
    assert answer.status_code in (400, 404, 413, 422), answer.text
    message = answer.json()["error"]["message"]
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 600


def test_bounds_of_explaining(house):
    ask = {"model": "one", "text": TEXT, "session": "s", "methods": ["attention"]}
    for more, status in (
        ({"methods": ["attention"] * (METHODS + 1)}, 413),
        ({"methods": []}, 422),
        ({"methods": ["attention:layer=x"]}, 422),
        ({"methods": ["../../x"]}, 422),
        ({"target": "gold"}, 422),
        ({"target": "9"}, 422),
        ({"session": ""}, 422),
    ):
        answer = house[1].post("/api/explain", json={**ask, **more})
        assert answer.status_code == status, answer.text
    for scores in ([1.0], [float("nan")] * 30, [1e300] * 30, []):
        body = json.dumps({"model": "one", "text": TEXT, "session": "s", "scores": {"m": scores}})
        answer = house[1].post("/api/curves", content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (200, 422)
        assert "error" in answer.text


def _fuzz(house, examples: int) -> None:
    schema = schemathesis.openapi.from_asgi(
        "/api/openapi.json", application(house[0]), headers={"authorization": f"Bearer {TOKEN}"}
    )
    client = house[1]
    patient = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    seen: set[str] = set()

    for operation in schema.get_all_operations():
        ok = operation.ok()

        def asked(case) -> None:
            body = case.body if not isinstance(case.body, type(schemathesis.core.NOT_SET)) else None
            if isinstance(body, dict) and "model" in body:
                body = {**body, "model": "one"}  # else nearly all of them would end there
            query = dict(case.query or {})
            if "model" in query:
                query["model"] = "one"
            content = None if body is None else json.dumps(body, default=str).encode("utf-8", "surrogatepass")
            answer = client.request(
                case.method, case.path, params=query, content=content, headers={"content-type": "application/json"}
            )
            assert answer.status_code < 500, answer.text
            declared = case.operation.definition.raw["responses"]
            assert str(answer.status_code) in declared
            if answer.status_code >= 400:
                assert answer.json()["error"]["message"].endswith((".", "?"))
            seen.add(case.path)

        from hypothesis import given

        given(case=ok.as_strategy())(patient(asked))()
    assert len(seen) >= 9


def test_what_the_description_allows_is_answered(house):
    _fuzz(house, 12)


@pytest.mark.hostile
def test_much_more_of_it_is_answered(house):
    _fuzz(house, 300)
