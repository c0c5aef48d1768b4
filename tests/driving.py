"""A headless browser that is driven: one Chromium, told what to do over a pipe in its own debugging protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
PATIENCE = 60.0  # seconds; more than anything takes on a machine with much else to do
KEYS = {"Tab": 9, "Enter": 13, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--hide-scrollbars")
FLAGS += ("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe")


class NavigatedError(AssertionError):
    """The page went while it was asked."""


class Page:
    """A tab. What its console says, and what goes wrong in it, is kept in `complaints`."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, os.fdopen(back, "rb")
        self._last, self._session = 0, ""
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._hear()
            if answer.get("id") == self._last:
                if "navigated" in answer.get("error", {}).get("message", ""):
                    raise NavigatedError(method)
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _hear(self) -> dict[str, Any]:
        heard = bytearray()
        while (byte := self._back.read(1)) != b"\0":
            assert byte, "the browser is gone"
            heard += byte
        message = json.loads(heard)
        said = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled" if said["type"] in ("error", "warning", "assert"):
                self.complaints.append(str([part.get("value") for part in said["args"]]))
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(said["exceptionDetails"])[:500])
            case "Log.entryAdded" if said["entry"]["level"] in ("error", "warning"):
                self.complaints.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")
        return message

    def run(self, script: str) -> Any:
        """The value of an expression on the page; what it promises is waited for."""
        how = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        done = self.send("Runtime.evaluate", expression=script, **how)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def until(self, condition: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self._holds(condition):
            assert time.monotonic() < end, f"it took too long: {condition}; {self.complaints}"
            time.sleep(0.05)

    def _holds(self, condition: str) -> bool:
        try:
            return self.run(f"!!({condition})")
        except NavigatedError:
            return False

    def open(self, address: str) -> None:
        self.send("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def click(self, selector: str, to: str | None = None) -> None:
        """A click in the middle of an element, or with `to` a drag from it to another."""
        self._mouse("mousePressed", *self._middle(selector))
        self._mouse("mouseMoved", *self._middle(to or selector))
        self._mouse("mouseReleased", *self._middle(to or selector))

    def _middle(self, selector: str) -> tuple[float, float]:
        found = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.run(
            f"(({{left, top, width, height}}) => [left, top, width, height])({found}.getBoundingClientRect())"
        )
        return box[0] + box[2] / 2, box[1] + box[3] / 2

    def _mouse(self, kind: str, x: float, y: float) -> None:
        held = 0 if kind == "mouseReleased" else 1
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=held, clickCount=1)

    def key(self, name: str, *, shift: bool = False) -> None:
        text = {"Enter": "\r", " ": " "}.get(name)
        press = {"key": name, "windowsVirtualKeyCode": KEYS[name], "modifiers": 8 if shift else 0}
        self.send(
            "Input.dispatchKeyEvent",
            type="keyDown" if text else "rawKeyDown",
            **press,
            **({"text": text} if text else {}),
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", **press)

    def write(self, text: str) -> None:
        """Into what has the keyboard."""
        self.send("Input.insertText", text=text)

    def sized(self, width: int, height: int = 900, *, scale: float = 1) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def dark(self, on: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def heard(self) -> list[dict[str, str]]:
        """What a screen reader is told: the role and name of everything that is there."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        shown = [node for node in nodes if not node.get("ignored")]
        return [{part: str(node.get(part, {}).get("value", "")) for part in ("role", "name")} for node in shown]

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed; apt-get install chromium to run the browser tests")
    theirs, to = os.pipe()
    back, answers = os.pipe()
    # The protocol is spoken on descriptors 3 and 4, whatever ours are called.
    script = f'exec "$0" "$@" 3<&{theirs} 4>&{answers}'
    command = ["bash", "-c", script, CHROMIUM, *FLAGS, f"--user-data-dir={profile}"]
    process = subprocess.Popen(command, pass_fds=(theirs, answers), stderr=subprocess.DEVNULL)
    os.close(theirs)
    os.close(answers)
    try:
        yield Page(to, back)
    finally:
        process.terminate()
        process.wait(30)
        os.close(to)
