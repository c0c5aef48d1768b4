"""How soon the playground answers, in forward passes of the text, and whether it stands a thousand requests.

A real server in a process of its own, asked over loopback. Alone and with four users at once: from the request that
follows a pause in typing to the first highlight, and to the last of the cheap methods. Every text is a new one, so that
nothing is answered from memory. Then requests of four users, bounded in number and time: how many were answered, how
long the slowest twentieth took, and what memory the server has before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import torch

import veridical
from benchmarks.results import machine, markdown, show, write_json, write_text
from benchmarks.subject import DATA, trained
from veridical.core.records import Example
from veridical.model.classifier import Classifier

USERS = 4
TEXTS = 24  # explained alone, and by each of the users
REQUESTS = 1000
SECONDS = 600.0  # that the load may take
UNITS = 5  # forward passes, of which the median is taken
HEAD = ("what", "found")


@dataclass(frozen=True)
class Reply:
    """An explanation that came line by line: when its first and its last line did, from the request on."""

    first: float
    last: float


@contextmanager
def server(model: Path) -> Iterator[tuple[httpx.Client, int]]:
    """A playground over the model, with a client that has its token, and its process."""
    words = [sys.executable, "-m", "veridical", "serve", str(model), "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        token = parse_qs(address.query)["token"][0]
        home = f"{address.scheme}://{address.netloc}"
        with httpx.Client(base_url=home, headers={"authorization": f"Bearer {token}"}, timeout=120) as client:
            yield client, process.pid
    finally:
        process.terminate()
        process.wait(30)


def explained(client: httpx.Client, model: str, text: str, methods: Sequence[str], session: str) -> Reply:
    """Ask for all of the methods, as the page does."""
    asked = {"model": model, "text": text, "methods": list(methods), "session": session}
    began = time.perf_counter()
    first = 0.0
    with client.stream("POST", "/api/explain", json=asked) as reply:
        reply.raise_for_status()
        for line in reply.iter_lines():
            held = json.loads(line)
            if "error" in held:
                raise RuntimeError(f"The playground answered {held['error']}.")
            first = first or time.perf_counter() - began
    return Reply(first, time.perf_counter() - began)


def unit(clf: Classifier, text: str) -> float:
    """Seconds of a forward pass of the text by itself."""
    batch = clf.collate(clf.encode([Example("text", text)]))
    taken = []
    for _ in range(UNITS):
        began = time.perf_counter()
        with torch.no_grad():
            clf.forward(batch)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, round(share * (len(values) - 1)))]


def memory(pid: int) -> float:
    """Megabytes that a process has in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def ready(client: httpx.Client, model: str) -> list[str]:
    """The cheap methods, when the server has counted what each of them costs: until then it has work of its own."""
    while True:
        facts = client.get("/api/methods", params={"model": model}).raise_for_status().json()
        if not facts["counting"]:
            return [method["name"] for method in facts["methods"] if method["cheap"]]
        time.sleep(1)


def soon(ask: Callable[[str, str], Reply], clf: Classifier, texts: Sequence[str]) -> list[tuple[float, float]]:
    """First and last line of each text for somebody alone, in passes of this text."""
    rows = []
    for text in texts:
        before = unit(clf, text)
        reply = ask(text, "alone")
        pass_ = (before + unit(clf, text)) / 2
        rows.append((reply.first / pass_, reply.last / pass_))
    return rows


def together(ask: Callable[[str, str], Reply], clf: Classifier, texts: Sequence[str]) -> list[tuple[float, float]]:
    """The same of four users who ask at once; what a pass takes is found when nobody asks."""
    passes = {text: unit(clf, text) for text in texts}
    shares = [texts[user::USERS] for user in range(USERS)]

    def user(number: int) -> list[tuple[float, float]]:
        replies = [(passes[text], ask(text, f"user {number}")) for text in shares[number]]
        return [(reply.first / pass_, reply.last / pass_) for pass_, reply in replies]

    with ThreadPoolExecutor(USERS) as pool:
        return [row for rows in pool.map(user, range(USERS)) for row in rows]


def load(client: httpx.Client, model: str, texts: Sequence[str], methods: Sequence[str], most: int) -> dict[str, float]:
    """Requests of four users, one after the other by each: erasures mostly, every tenth an explanation."""
    end = time.perf_counter() + SECONDS

    def user(number: int) -> list[tuple[float, bool]]:
        rows = []
        for turn in range(number, most, USERS):
            if time.perf_counter() > end:
                break
            text, began = f"{texts[turn % len(texts)]} {turn}", time.perf_counter()
            asked: dict[str, object] = {"model": model, "text": text}
            if turn % 10:
                reply = client.post("/api/predict", json={**asked, "erased": [1 + turn % 5]})
            else:
                reply = client.post("/api/explain", json={**asked, "methods": [*methods], "session": f"user {number}"})
            rows.append((time.perf_counter() - began, reply.status_code == 200))
        return rows

    began = time.perf_counter()
    with ThreadPoolExecutor(USERS) as pool:
        rows = [row for part in pool.map(user, range(USERS)) for row in part]
    return {
        "asked": len(rows),
        "answered": sum(right for _, right in rows),
        "p95": percentile([taken for taken, _ in rows], 0.95),
        "seconds": time.perf_counter() - began,
    }


def measured(folder: Path, requests: int) -> dict[str, object]:
    torch.set_num_threads(1)
    clf = veridical.load(folder)
    texts = [example.text for example in veridical.load_data(DATA).splits["test"][: 3 * TEXTS + 1]]
    with server(folder) as (client, pid):
        model = client.get("/api/info").raise_for_status().json()["models"][0]["name"]
        methods = ready(client, model)
        ask = lambda text, session: explained(client, model, text, methods, session)  # noqa: E731
        ask(texts[-1], "warm-up")
        alone, four = soon(ask, clf, texts[:TEXTS]), together(ask, clf, texts[TEXTS : 3 * TEXTS])
        pass_ = statistics.median(unit(clf, text) for text in texts[:TEXTS])
        load(client, model, texts, methods, requests // 10)
        before = memory(pid)
        loaded = load(client, model, texts, methods, requests)
        after = memory(pid)
    return {
        "machine": machine(1),
        "methods": methods,
        "pass_seconds": pass_,
        "alone": alone,
        "four": four,
        "load": loaded | {"p95_passes": loaded["p95"] / pass_, "megabytes_before": before, "megabytes_after": after},
    }


def rows_of(found: dict) -> list[tuple[str, str]]:
    def told(rows: Sequence[tuple[float, float]], place: int) -> str:
        values = [row[place] for row in rows]
        return f"{statistics.median(values):.1f} (95%: {percentile(values, 0.95):.1f})"

    held = found["load"]
    cheap = f"all {len(found['methods'])} cheap methods"
    return [
        ("alone: first highlight, in passes", told(found["alone"], 0)),
        (f"alone: {cheap}, in passes", told(found["alone"], 1)),
        ("four at once: first highlight, in passes", told(found["four"], 0)),
        (f"four at once: {cheap}, in passes", told(found["four"], 1)),
        ("requests of four users, answered", f"{held['answered']} of {held['asked']}"),
        ("95th percentile, in passes", f"{held['p95_passes']:.1f}"),
        ("memory before and after, MB", f"{held['megabytes_before']:.0f}, {held['megabytes_after']:.0f}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="a trained run (default: trained at the first call)")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="(default: %(default)s)")
    given = parser.parse_args()
    found = measured(trained(given.model), given.requests)
    rows = rows_of(found)
    show("The playground", HEAD, rows)
    write_json(given.out / "playground.json", found)
    print(write_text(given.out / "playground.md", markdown(HEAD, rows) + "\n"))


if __name__ == "__main__":
    main()
