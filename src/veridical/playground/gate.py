"""Who may ask what: the one place that every request passes.

- `Host` must be a name of this machine: a foreign name that resolves to it (DNS rebinding) is refused.
- `Origin`, where a browser sends one, must be the page's own: other sites cannot call the API with a user's cookie.
- The token comes as a cookie (HttpOnly, SameSite=Strict, derived from it) or as `Authorization: Bearer`, and is
  compared in constant time. The page and its files have nothing secret in them and need none; watched folders have a
  random key in their address, because their pages run in a sandbox that has no cookies.
- A page that another site led to waits for a click before it asks for anything (`waits`): the text in an address is
  not what the user chose to have explained. At /embed, which a notebook may frame, the page sends no cookies at all.
- Every answer carries a content policy under which nothing from elsewhere is loaded and no inline script runs.
- A request's body is bounded before anybody parses it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import secrets
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from veridical.playground.limits import BODY, HEAD
from veridical.playground.problem import ProblemError, problem_of

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}"
)
# Our reports hold inline scripts. They run, in an origin of their own: no cookie, no API, nothing from elsewhere.
SANDBOX = (
    "sandbox allow-scripts allow-popups allow-downloads allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
# A notebook on this machine may frame the page at /embed; no other page, and no other address.
NOTEBOOKS = "'self' http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:* vscode-webview:"
ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
OPEN = ("/embed", "/static/", "/watched/")  # without a token: see above
CODE = 60.0  # seconds in which a code for one opening is good
ELSEWHERE = ("cross-site", "same-site")  # another port of this machine is the same site, and another server
Scope = Mapping[str, Any]


@dataclass(frozen=True)
class Gate:
    """An ASGI application in front of another."""

    app: Any
    token: str
    host: str  # that is listened on
    cookie: str = "veridical"  # with the port in it: cookies know no ports
    _names: frozenset[str] = field(default_factory=frozenset)
    _codes: dict[str, float] = field(default_factory=dict)  # each with the time it was made

    @property
    def pass_word(self) -> str:
        """What the cookie holds: of use here alone."""
        return hmac.new(self.token.encode(), b"cookie", hashlib.sha256).hexdigest()

    def once(self) -> str:
        """A code that opens the page once, soon: what stands on a browser's command line, others can read."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = time.monotonic()
        return code

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no other ways in
            return
        sent = _Guarded(send, policy_of(scope["path"]))
        try:
            await self._pass(scope, receive, sent)
        except Exception as problem:
            if not sent.begun:
                await refuse(sent, problem_of(problem))

    async def _pass(self, scope: Scope, receive: Any, sent: _Guarded) -> None:
        headers = _headers(scope)
        self._insist_on_host(headers)
        self._insist_on_origin(headers, scope)
        _insist_on_size(headers)
        page = scope["path"] == "/"
        if page and (_given(scope, "token") or _given(scope, "code")) is not None:
            self._insist_on(_given(scope, "token"), _given(scope, "code"))
            await _redirect(sent, f"{self.cookie}={self.pass_word}; HttpOnly; SameSite=Strict; Path=/")
            return
        if not page and not scope["path"].startswith(OPEN):
            self._insist_on_token(headers)
        waits = page and (_from_elsewhere(headers) or not self._has_token(headers))
        await self.app({**scope, "state": {**scope.get("state", {}), "waits": waits}}, _bounded(receive), sent)

    # -- who asks ---------------------------------------------------------------------------------------------

    def _insist_on_host(self, headers: Mapping[str, list[str]]) -> None:
        given = headers.get("host", [])
        name = _name_in(given[0]) if len(given) == 1 else None
        if name is None or not self._is_ours(name):
            raise ProblemError(
                403,
                "host",
                "The request names a host that this server does not go by; open the address that was printed.",
            )

    def _is_ours(self, name: str) -> bool:
        if name in ("localhost", "127.0.0.1", "::1") or name in (self.host.lower(), *self._names):
            return True
        # Of a server that others may reach: its own names, and numbers, which nobody can make point elsewhere.
        return is_public(self.host) and (_is_number(name) or name in own_names())

    def _insist_on_origin(self, headers: Mapping[str, list[str]], scope: Scope) -> None:
        foreign = any(_place_of(origin) != headers["host"][0].lower() for origin in headers.get("origin", []))
        crossing = _from_elsewhere(headers)
        # A notebook's frame of /embed is asked for as a frame, never as a page of its own.
        led = "cross-site" in headers.get("sec-fetch-site", []) and "document" in headers.get("sec-fetch-dest", [])
        if foreign or (crossing and scope["path"].startswith("/api/")) or (led and scope["path"] == "/embed"):
            raise ProblemError(
                403, "origin", "The request comes from another site's page; open the address that was printed."
            )

    def _has_token(self, headers: Mapping[str, list[str]]) -> bool:
        bearer = [value.partition(" ") for value in headers.get("authorization", [])]
        if any(kind.lower() == "bearer" and same(word.strip(), self.token) for kind, _, word in bearer):
            return True
        return any(same(value, self.pass_word) for value in _cookies(headers, self.cookie))

    def _insist_on_token(self, headers: Mapping[str, list[str]]) -> None:
        if not self._has_token(headers):
            raise ProblemError(401, "token", "The token is missing or wrong; send it as a cookie or bearer.")

    def _insist_on(self, token: str | None, code: str | None) -> None:
        if code is not None and time.monotonic() - self._codes.pop(code, -CODE) <= CODE:
            return
        if token is None or not same(token, self.token):
            raise ProblemError(
                401, "token", "The token in the address is wrong; open the whole address that was printed last."
            )


def same(given: str, right: str) -> bool:
    """Compared in a time that does not tell how much of it is right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode("utf-8"))


def is_public(host: str) -> bool:
    """Whether others than this machine may reach an address that is listened on."""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() != "localhost"


def own_names() -> set[str]:
    return {name.lower() for name in (socket.gethostname(), socket.getfqdn())}


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
        return True
    except ValueError:
        return False


def _from_elsewhere(headers: Mapping[str, list[str]]) -> bool:
    """Whether a browser says that another site's page asks, or led here."""
    return any(site in ELSEWHERE for site in headers.get("sec-fetch-site", []))


def _place_of(origin: str) -> str | None:
    """Host and port of an `Origin` header; None where it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _name_in(host: str) -> str | None:
    """A `Host` header without its port, in small letters."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
        plain = parts.username is None and not (parts.path or parts.query or parts.fragment)
        return parts.hostname.lower() if parts.hostname and plain else None
    except ValueError:
        return None


# -- headers and bodies ---------------------------------------------------------------------------------------


def _headers(scope: Scope) -> dict[str, list[str]]:
    held: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        held.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return held


def _cookies(headers: Mapping[str, list[str]], name: str) -> Iterable[str]:
    for line in headers.get("cookie", []):
        try:
            held = SimpleCookie(line)
        except CookieError:
            continue
        if name in held:
            yield held[name].value


def _given(scope: Scope, name: str) -> str | None:
    """The token or code in the address, if there is one."""
    return next(iter(parse_qs(scope["query_string"].decode("latin-1")).get(name, [])), None)


def _too_large() -> ProblemError:
    return ProblemError(413, "too_long", f"The request is longer than {BODY:,} bytes; ask for less at once.")


def _insist_on_size(headers: Mapping[str, list[str]]) -> None:
    for length in headers.get("content-length", []):
        if not length.isdecimal() or len(length) > 12 or int(length) > BODY:
            raise _too_large()


def _bounded(receive: Any) -> Any:
    read, whole = 0, False
    until = time.monotonic() + HEAD

    async def bounded() -> Any:
        nonlocal read, whole
        if whole:  # what comes now is that the reader goes, some time
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), until - time.monotonic())
        except TimeoutError as late:
            sentence = f"The request did not come to its end in {HEAD:g} seconds; send it again."
            raise ProblemError(400, "request", sentence) from late
        read += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if read > BODY:
            raise _too_large()
        return message

    return bounded


def policy_of(path: str) -> str:
    if path.startswith("/watched/"):
        return SANDBOX
    return POLICY.format(ancestors=NOTEBOOKS if path == "/embed" else "'self'")


class _Guarded:
    """What is sent, with the headers that every answer has."""

    def __init__(self, send: Any, policy: str):
        self._send, self._extra, self.begun = send, {**ALWAYS, "content-security-policy": policy}, False

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.begun, extra = True, self._extra
            kept = [(name, value) for name, value in message["headers"] if name.decode("latin-1").lower() not in extra]
            more = [(name.encode(), value.encode()) for name, value in extra.items()]
            message = {**message, "headers": [*kept, *more]}
        await self._send(message)


async def _redirect(send: Any, cookie: str) -> None:
    headers = [(b"location", b"./"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def refuse(send: Any, problem: ProblemError) -> None:
    body = json.dumps({"error": problem.plain()}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
