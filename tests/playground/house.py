"""A playground over tiny models, with a client that has its token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from tiny import tiny
from veridical.core.records import Dataset
from veridical.model.classifier import Classifier
from veridical.playground.app import application
from veridical.playground.gate import Gate
from veridical.playground.house import Audited, House
from veridical.playground.served import served

TOKEN = "a-token-for-tests-0123456789"
HOME = "http://127.0.0.1:8765"
TEXT = "The plot was boring, but the acting is really very good."


def classifier(family: str = "bert", name: str = "one", **config: Any) -> Classifier:
    model, tokenizer = tiny(family, **config)
    return Classifier(model, tokenizer, name=name)


@contextmanager
def opened(
    *classifiers: Classifier,
    data: Dataset | None = None,
    audit: Path | None = None,
    watched: dict[str, Path] | None = None,
    **more: Any,
) -> Iterator[tuple[House, TestClient]]:
    models = {model.name: model for model in served(classifiers)}
    read = None if audit is None else Audited.read(audit)
    house = House(models, TOKEN, data, read, watched or {}, **more)
    house.open()
    try:
        gate = Gate(application(house), TOKEN, "127.0.0.1", "veridical-8765")
        headers = {"authorization": f"Bearer {TOKEN}"}
        with TestClient(gate, base_url=HOME, headers=headers, raise_server_exceptions=False) as client:
            yield house, client
    finally:
        house.close()


def lines_of(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]
