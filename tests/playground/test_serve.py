"""`serve` itself: the handle, the command, watched work, and what is said."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

import veridical
from playground.house import classifier, opened
from toy import small_model, toy
from veridical.core import store
from veridical.core.errors import InputError
from veridical.playground import serve as module

AUDIT = Path(__file__).parents[1] / "audits" / "audit_of_0.2"


def test_a_handle_shows_itself_and_stops():
    clf = classifier()
    before = [parameter.requires_grad for parameter in clf.model.parameters()]
    playground = veridical.serve(clf, port=0)
    try:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", playground.url)
        frame = playground._repr_html_()
        assert f"{playground.address}/embed#token={playground.token}" in frame
        with httpx.Client() as client:
            page = client.get(playground.url, follow_redirects=True)
            assert page.status_code == 200
            assert "<html" in page.text
            assert client.get(f"{playground.address}/api/info").status_code == 200  # by its cookie
    finally:
        playground.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(playground.url)
    assert [parameter.requires_grad for parameter in clf.model.parameters()] == before


def test_what_is_missing_is_said_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs fastapi and uvicorn, .*pip install fastapi uvicorn"):
        veridical.serve(classifier())


@pytest.mark.whole
def test_the_command_says_where_and_ends_cleanly(tmp_path):
    model = small_model(tmp_path / "model")
    words = [sys.executable, "-m", "veridical", "serve", model, "--port", "0"]
    # What a test starts in the background would ignore Ctrl-C.
    started = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        url = started.stdout.readline().strip()
        with httpx.Client() as client:
            assert client.get(url, follow_redirects=True).status_code == 200
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
    finally:
        started.kill()
    assert started.returncode == 0, said
    assert "million parameters" in said
    assert "MB of memory" in said
    assert "Traceback" not in said


def test_watched_work(tmp_path):
    root = tmp_path / "runs"
    veridical.train(toy(), small_model(tmp_path / "model"), out=root / "train", config={"epochs": 1}, progress=False)
    store.write_json(root / "audit" / "spec.json", {"corpora": {"a/b": "1"}, "looks": [24, 48]})
    store.write_json(root / "audit" / "stamp.json", {})
    place = root / "audit" / "corpora" / "a-b" / "attributions" / "x"
    for number in range(3):
        store.write_text(place / f"part-{number:04d}.parquet", "")
    store.write_text(root / "audit" / "report.html", "<p>so far</p>")
    with opened(watched={"runs": root}) as (_, client):
        found = {row["name"]: row for row in client.get("/api/watch").json()["folders"]}
        assert client.get("/api/info").json()["models"] == []
        train, audit = found["runs/train"], found["runs/audit"]
        assert (train["kind"], train["state"], train["done"]) == ("train", "done", train["of"])
        assert (audit["kind"], audit["state"], audit["done"], audit["of"]) == ("audit", "stopped", 12, 48)
        assert client.get(audit["pages"][0]["url"]).text == "<p>so far</p>"
        sign = root / "audit" / ".work.running-1"
        sign.write_text("")
        os.utime(sign, (time.time(), time.time()))
        found = {row["name"]: row for row in client.get("/api/watch").json()["folders"]}
        assert found["runs/audit"]["state"] == "running"
        assert found["runs/audit"]["seconds_left"] is not None


def test_a_finished_audit_tells_its_verdict(tmp_path):
    folder = tmp_path / "audit"
    shutil.copytree(AUDIT, folder)
    (folder / "corpora").mkdir()
    store.write_json(folder / "spec.json", {"corpora": {"a/b": "1"}, "looks": [24]})
    store.write_text(folder / "report.html", "<p>done</p>")
    with opened(watched={"audit": folder}) as (_, client):
        (row,) = client.get("/api/watch").json()["folders"]
    assert (row["kind"], row["state"]) == ("audit", "done")
    assert row["figures"]["verdict"]
    assert "report" in [page["title"] for page in row["pages"]]


def test_odd_folders_are_rows_of_their_own(tmp_path):
    root = tmp_path / "runs"
    for name, spec in (
        ("no looks", {"corpora": {"a": "1"}, "looks": []}),
        ("odd corpora", {"corpora": [1, None], "looks": [24]}),
        ("odd looks", {"corpora": {"a": "1"}, "looks": ["x"]}),
        ("alive", {"corpora": {"a": "1"}, "looks": [24]}),
    ):
        store.write_json(root / name / "spec.json", spec)
        (root / name / "corpora").mkdir()
    store.write_text(root / "alive" / "corpora" / "a" / "attributions" / "x" / "part-0000.parquet", "")
    (root / "alive" / ".work.running-1").write_text("")  # and no stamp.json beside it
    odd = os.fsencode(root) + b"/latin-\xe9"
    os.makedirs(odd + b"/corpora")
    for name, content in ((b"spec.json", b'{"corpora": {"a": "1"}, "looks": [24]}'), (b"report.html", b"<p></p>")):
        with open(odd + b"/" + name, "wb") as file:
            file.write(content)
    with opened(watched={"runs": root}) as (_, client):
        answer = client.get("/api/watch")
        assert answer.status_code == 200, answer.text
        found = {row["name"]: row for row in answer.json()["folders"]}
    assert found["runs/no looks"]["state"] == "broken"
    assert found["runs/odd looks"]["state"] == "broken"
    assert found["runs/odd looks"]["figures"]["problem"]
    assert found["runs/odd corpora"]["state"] == "stopped"
    assert (found["runs/alive"]["state"], found["runs/alive"]["seconds_left"]) == ("running", None)
    assert found["runs/latin-?"]["pages"] == []


def test_links_to_pages_are_encoded(tmp_path):
    folder = tmp_path / "runs" / "run #1 100%25?x"
    store.write_json(folder / "spec.json", {"corpora": {"a": "1"}, "looks": [24]})
    (folder / "corpora").mkdir()
    store.write_text(folder / "a #b.html", "<p>here</p>")
    playground = veridical.serve(watch=str(tmp_path / "runs"), port=0)
    try:
        headers = {"authorization": f"Bearer {playground.token}"}
        (row,) = httpx.get(f"{playground.address}/api/watch", headers=headers).json()["folders"]
        assert "#" not in row["pages"][0]["url"]
        assert httpx.get(playground.address + row["pages"][0]["url"]).text == "<p>here</p>"
    finally:
        playground.stop()


def test_a_public_address_is_told_with_the_machines_name(monkeypatch):
    playground = veridical.serve(classifier(), port=0, host="127.0.0.1")
    try:
        assert playground.far_url is None
        playground._host = "0.0.0.0"  # without listening there
        monkeypatch.setattr(module.socket, "getfqdn", lambda: "machine.example")
        assert playground.far_url == f"http://machine.example:{playground.port}/?token={playground.token}"
    finally:
        playground.stop()


def test_ctrl_c_while_models_load_ends_without_a_promise(monkeypatch):
    from typer.testing import CliRunner

    from veridical.cli.app import app

    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "serve", interrupted)
    result = CliRunner().invoke(app, ["serve", "model"])
    assert result.exit_code == 130
    assert "Ended before it was open." in result.output
    assert "run the same command again" not in result.output
