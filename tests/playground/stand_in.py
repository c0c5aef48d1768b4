"""A server that answers as the playground's API does, from a bag of words: what the page makes of answers is tested
without a model."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import veridical

STATIC = Path(veridical.__file__).parent / "playground" / "static"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"
POLICY += "; base-uri 'none'; form-action 'none'"
KINDS = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
LABELS = ("negative", "positive")
LONG_NAME = "positive-" * 9  # of a class that only one model has
WEIGHTS = {"warm": 2.0, "funny": 1.0, "never": -1.5, "dull": -2.0}
HOSTILE = "<img src=x onerror=\"document.title='owned'\"> dull \U0001f600 end"
TEXTS = ("a warm and funny film", "a dull film", HOSTILE, *(f"film number {i}" for i in range(40)))
METHODS = {"occlusion": (True, True), "gradient": (False, True), "attention": (False, False)}  # signed, about a class
LONGEST = 400  # characters


def words(text: str) -> list[dict[str, Any]]:
    """Every word is a token; a special token stands before them."""
    found = enumerate(re.finditer(r"\S+", text))
    return [
        {"index": i, "text": word[0], "start": word.start(), "end": word.end(), "tokens": [i + 1]} for i, word in found
    ]


def positive(text: str, gone: set[int], model: str) -> float:
    kept = (word["text"].lower() for word in words(text) if word["tokens"][0] not in gone)
    sign = -1 if model == "contrary" else 1
    return 1 / (1 + math.exp(-sign * (0.3 + sum(WEIGHTS.get(word, 0) for word in kept))))


def model(name: str) -> dict[str, Any]:
    sizes = {"max_tokens": 64, "parameters": 1000, "memory_mb": 1, "audited": True}
    kind = {"name": name, "path": name, "family": "bag", "labels": LABELS, "multi_label": False, "pairs": False}
    if name == "other classes":
        kind["labels"] = (*LABELS, LONG_NAME)
    return {**kind, **sizes, "operators": ["delete", "mask"]}


class Handler(BaseHTTPRequestHandler):
    models: tuple[str, ...] = ("bag",)
    counting = False  # whether it says that passes are still counted
    looks = 0  # at examples in an order that needs all predictions

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a test's output is its own."""

    def answer(self, body: Any, kind: str = "application/json", status: int = 200) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status: int, message: str) -> None:
        self.answer({"error": {"code": "refused", "message": message}}, status=status)

    def stream(self, lines: list[dict[str, Any]]) -> None:
        self.answer(
            b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, {"done": True}]), "application/x-ndjson"
        )

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(asked.query).items()}
        if asked.path == "/" or asked.path.startswith("/static/"):
            path = STATIC / (asked.path.removeprefix("/static/").lstrip("/") or "index.html")
            content = path.read_bytes()
            if "waits" in query:  # as the gate has it where another site led to the page
                content = content.replace(b"<html ", b"<html data-waits ")
            self.answer(content, KINDS[path.suffix])
        elif asked.path == "/api/info":
            data = {"name": "toy", "splits": {"test": len(TEXTS)}}
            info = {"version": "0", "models": [model(name) for name in self.models], "data": data, "audit": None}
            self.answer({**info, "watch": ["runs"], "limits": {"methods": 3, "characters": LONGEST}})
        elif asked.path == "/api/methods":
            found = {"standing": "believe", "sentence": "It came first."}
            rows = [
                {"name": name, "summary": name, "signed": signed, "about_class": about, "passes": 1, "cheap": True}
                | {"audit": found if name == "occlusion" else None}
                for name, (signed, about) in METHODS.items()
            ]
            self.answer({"counting": self.counting, "methods": rows, "default": ["occlusion", "attention"]})
        elif asked.path == "/api/examples":
            self.examples(query)
        elif asked.path == "/api/watch":
            folder = {"name": "runs", "kind": "audit", "state": "running", "done": 24, "of": 96, "seconds_left": 300.0}
            pages = [{"title": "Report", "url": "/watched/key/report.html"}]
            figures = {"accuracy": 0.83125, "verdict": "Believe occlusion: shown to be better than all others. " * 5}
            self.answer({"folders": [{**folder, "figures": figures, "pages": pages}]})
        else:
            self.refuse(404, "There is nothing here.")

    def examples(self, query: dict[str, str]) -> None:
        if query["sort"] == "disagreeing":
            return self.refuse(409, "Only an audit knows where methods disagree.")
        first, most = int(query["offset"]), int(query["limit"])
        rows = [
            {"id": f"toy-{i}", "text": text, "context": None, "label": "positive", "predicted": "negative"}
            | {"probability": 0.75, "disagreement": None, "right": False}
            for i, text in enumerate(TEXTS)
        ]
        read = len(rows) if query["sort"] == "first" or self.asked_again() else 5
        shown = rows[:read][first : first + most]
        return self.answer({"total": read, "examples": shown, "read": read, "of": len(rows)})

    def asked_again(self) -> bool:
        """The second time all predictions are there."""
        type(self).looks += 1
        return type(self).looks > 1

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = asked["text"]
        if len(text) > LONGEST:
            return self.refuse(413, f"The text has {len(text)} characters and {LONGEST} are the most; shorten it.")
        found = words(text)
        free = [word["tokens"][0] for word in found]
        if self.path == "/api/tokens":
            special = {"index": 0, "text": "[CLS]", "start": 0, "end": 0, "free": False, "word": None}
            tokens = [{**word, "index": word["index"] + 1, "free": True, "word": word["index"]} for word in found]
            return self.answer({"tokens": [special, *tokens], "words": found, "truncated": False, "windows": 1})
        if self.path == "/api/predict":
            gone = set(free) - set(asked["kept"]) if "kept" in asked else set(asked.get("erased", ()))
            return self.answer(self.said(text, gone, asked["model"]))
        if self.path == "/api/export":
            return self.answer(b"exported", "application/octet-stream")
        kinds = {"/api/explain": self.explained, "/api/curves": self.curves, "/api/agreement": self.agreement}
        return self.stream(kinds[self.path](asked, found))

    def said(self, text: str, gone: set[int], name: str) -> dict[str, Any]:
        up = positive(text, gone, name)
        both = [{"label": label, "probability": p} for label, p in zip(LABELS, (1 - up, up), strict=True)]
        return {
            "label": LABELS[up > 0.5],
            "probabilities": both,
            "multi_label": False,
            "erased": len(gone),
            "passes": 1,
        }

    def explained(self, asked: dict[str, Any], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        lines = []
        target = self.said(asked["text"], set(), asked["model"])["label"]
        if asked["target"] not in ("predicted", *model(asked["model"])["labels"]):
            return [{"error": {"code": "input", "message": "There is no such class."}}]
        for method in asked["methods"]:
            signed, about = METHODS[method]
            scores = [WEIGHTS.get(word["text"].lower(), 0) * (1 if target == "positive" else -1) for word in found]
            scores = scores if signed else [abs(score) + 0.1 for score in scores]
            line = {"method": method, "signed": signed, "about_class": about, "target_name": target, "notes": []}
            lines.append({**line, "scores": [0, *scores], "word_scores": scores, "seconds": 0.01, "passes": 1})
        return lines

    def curves(self, asked: dict[str, Any], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        random = {
            "deletion": [0.9, 0.7, 0.5],
            "insertion": [0.5, 0.7, 0.9],
            "areas": {"deletion": 0.7, "insertion": 0.7},
        }
        lines = []
        for method in asked["scores"]:
            low = 0.5 if method == "occlusion" else 0.7
            curve = {"deletion": [0.9, low, 0.5], "insertion": [0.5, 0.8, 0.9]}
            areas = {"deletion": low, "insertion": 0.75}
            lines.append({"method": method, "fractions": [0, 0.5, 1], **curve, "areas": areas, "random": random})
        return lines

    def agreement(self, asked: dict[str, Any], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        figures = {"tau": -0.25, "top_overlap": 0.5, "share": 0.25, "level": "word", "units": 5, "same_class": False}
        return [{"method": method, **figures} for method in asked["methods"]]


@contextmanager
def standing_in(*models: str, counting: bool = False) -> Iterator[str]:
    """The address of a server with these models."""
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Serving", (Handler,), {"models": models, "counting": counting})
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
