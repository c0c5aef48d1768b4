"""Who may ask what: the one place that every request passes.

- `Host` must be a name of this machine: a foreign name that resolves to it (DNS rebinding) is refused.
- `Origin`, where a browser sends one, must be the page's own: other sites cannot call the API with a user's cookie.
- The token comes as a cookie (HttpOnly, SameSite=Strict, derived from it) or as `Authorization: Bearer`, and is
  compared in constant time. The page's own files have nothing secret in them and need none; watched folders have a
  random key in their address, because their pages run in a sandbox that has no cookies.
- Every answer carries a content policy under which nothing from elsewhere is loaded and no inline script runs.
- A request's body is bounded before anybody parses it.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from veridical.playground.limits import BODY
from veridical.playground.problem import ProblemError

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
Scope = Mapping[str, Any]


@dataclass(frozen=True)
class Gate:
    """An ASGI application in front of another."""

    app: Any
    token: str
    host: str  # that is listened on
    cookie: str = "veridical"  # with the port in it: cookies know no ports
    _names: frozenset[str] = field(default_factory=frozenset)

    @property
    def pass_word(self) -> str:
        """What the cookie holds: of use here alone."""
        return hmac.new(self.token.encode(), b"cookie", hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no other ways in
            return
        sent = _guarded(send, policy_of(scope["path"]))
        try:
            headers = _headers(scope)
            self._insist_on_host(headers)
            self._insist_on_origin(headers, scope)
            _insist_on_size(headers)
            if scope["path"] == "/" and (given := _given(scope)) is not None:
                self._insist_on(given)
                await _redirect(sent, f"{self.cookie}={self.pass_word}; HttpOnly; SameSite=Strict; Path=/")
                return
            if not scope["path"].startswith(OPEN):
                self._insist_on_token(headers, page=scope["path"] == "/")
            await self.app(scope, _bounded(receive), sent)
        except ProblemError as problem:
            await refuse(sent, problem)

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
        origins = headers.get("origin", [])
        foreign = any(urlsplit(origin).netloc.lower() != headers["host"][0].lower() for origin in origins)
        crossing = headers.get("sec-fetch-site", [""])[0] in ("cross-site", "same-site")
        if foreign or (crossing and scope["path"].startswith("/api/")):
            raise ProblemError(
                403, "origin", "The request comes from another site's page; open the address that was printed."
            )

    def _insist_on_token(self, headers: Mapping[str, list[str]], *, page: bool) -> None:
        bearer = [value.partition(" ") for value in headers.get("authorization", [])]
        if any(kind.lower() == "bearer" and same(word.strip(), self.token) for kind, _, word in bearer):
            return
        if any(same(value, self.pass_word) for value in _cookies(headers, self.cookie)):
            return
        where = "open the whole address that was printed, with its token" if page else "send it as a cookie or bearer"
        raise ProblemError(401, "token", f"The token is missing or wrong; {where}.")

    def _insist_on(self, given: str) -> None:
        if not same(given, self.token):
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


def _given(scope: Scope) -> str | None:
    """The token in the address, if there is one."""
    return next(iter(parse_qs(scope["query_string"].decode("latin-1")).get("token", [])), None)


def _too_large() -> ProblemError:
    return ProblemError(413, "too_long", f"The request is longer than {BODY:,} bytes; ask for less at once.")


def _insist_on_size(headers: Mapping[str, list[str]]) -> None:
    for length in headers.get("content-length", []):
        if not length.isdecimal() or len(length) > 12 or int(length) > BODY:
            raise _too_large()


def _bounded(receive: Any) -> Any:
    read = 0

    async def bounded() -> Any:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > BODY:
            raise _too_large()
        return message

    return bounded


def policy_of(path: str) -> str:
    if path.startswith("/watched/"):
        return SANDBOX
    return POLICY.format(ancestors=NOTEBOOKS if path == "/embed" else "'self'")


def _guarded(send: Any, policy: str) -> Any:
    """What is sent, with the headers that every answer has."""
    extra = {**ALWAYS, "content-security-policy": policy}

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message["headers"] if name.decode("latin-1").lower() not in extra]
            more = [(name.encode(), value.encode()) for name, value in extra.items()]
            message = {**message, "headers": [*kept, *more]}
        await send(message)

    return sent


async def _redirect(send: Any, cookie: str) -> None:
    headers = [(b"location", b"./"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def refuse(send: Any, problem: ProblemError) -> None:
    body = json.dumps({"error": problem.plain()}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
