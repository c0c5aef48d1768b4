"""Who may ask: tokens, hosts, origins, and files outside the folders that were named."""

from __future__ import annotations

import os
import socket

import httpx
import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from starlette.testclient import TestClient

from playground.house import HOME, TEXT, TOKEN, classifier, opened
from veridical.core.errors import InputError
from veridical.playground.gate import Gate, _name_in, is_public
from veridical.playground.limits import BODY
from veridical.playground.serve import listening, serve

INFO = "/api/info"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("watched")
    (root / "work").mkdir()
    (root / "work" / "report.html").write_text("<script>1</script>", encoding="utf-8")
    (root / "work" / "notes.txt").write_text("no page", encoding="utf-8")
    (root / "work" / ".hidden.html").write_text("hidden", encoding="utf-8")
    (root / "work" / ".inner").mkdir()
    (root / "work" / ".inner" / "page.html").write_text("secret", encoding="utf-8")
    os.symlink(root / "work" / ".inner" / "page.html", root / "work" / "shown.html")
    (root / "secret.html").write_text("secret", encoding="utf-8")
    os.symlink(root / "secret.html", root / "work" / "link.html")
    os.symlink(root, root / "work" / "up")
    return root


@pytest.fixture(scope="module")
def house(place):
    with opened(classifier(), watched={"work": place / "work"}) as opening:
        yield opening


@pytest.fixture
def client(house):
    """Without the token."""
    client = house[1]
    held = client.headers.pop("authorization")
    client.cookies.clear()
    yield client
    client.headers["authorization"] = held
    client.cookies.clear()


@pytest.mark.parametrize("path", [INFO, "/api/openapi.json", "/api/watch", "/api/examples"])
@pytest.mark.parametrize("given", [None, "Bearer ", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN])
def test_without_the_token_nothing_is_told(client, path, given):
    answer = client.get(path, headers={} if given is None else {"authorization": given})
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "token"
    assert TOKEN not in answer.text


def test_the_token_comes_as_bearer_or_through_the_page_as_a_cookie(client):
    assert client.get(INFO, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get("/", params={"token": "wrong"}, follow_redirects=False).status_code == 401
    answer = client.get("/", params={"token": TOKEN}, follow_redirects=False)
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    assert client.get(INFO).status_code == 200
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost@evil.example", "10.0.0.1", ""]
)
def test_foreign_hosts_are_refused(house, host):
    answer = house[1].get(INFO, headers={"host": host})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "host"


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost", "LOCALHOST:9", "[::1]:8765"])
def test_our_own_hosts_are_not(house, host):
    assert house[1].get(INFO, headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "file://", "http://[::1", "http://[x]"]
)
def test_other_sites_cannot_ask(house, origin):
    ask = {"model": "one", "text": TEXT}
    answer = house[1].post("/api/predict", json=ask, headers={"origin": origin})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "origin"


def test_the_page_itself_can(house):
    own = {"origin": HOME, "sec-fetch-site": "same-origin"}
    assert house[1].post("/api/predict", json={"model": "one", "text": TEXT}, headers=own).status_code == 200
    assert house[1].get(INFO, headers={"sec-fetch-site": "cross-site"}).status_code == 403


WAITS = "<html data-waits "


@pytest.mark.parametrize("site", [None, "none", "same-origin", "same-site", "cross-site"])
def test_a_page_that_another_site_led_to_waits_for_a_click(house, client, site):
    fetched = {} if site is None else {"sec-fetch-site": site, "sec-fetch-dest": "document"}
    without = client.get("/", headers=fetched)
    assert without.status_code == 200  # there is nothing secret in it
    assert WAITS in without.text
    client.get("/", params={"token": TOKEN}, follow_redirects=False)
    given = client.get("/", headers=fetched)  # with the cookie, which another port of this machine has sent along
    assert (WAITS in given.text) is (site in ("same-site", "cross-site"))


def test_the_frame_is_no_page_of_its_own_for_other_sites(client):
    fetched = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}
    assert client.get("/embed", headers=fetched).status_code == 403
    assert client.get("/embed", headers={**fetched, "sec-fetch-dest": "iframe"}).status_code == 200
    assert client.get("/embed", headers={**fetched, "sec-fetch-site": "none"}).status_code == 200


def test_every_header_that_says_where_from_is_read(house):
    headers = [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")]
    assert house[1].get(INFO, headers=headers).status_code == 403


def test_a_code_opens_the_page_once_and_soon(client, house, monkeypatch):
    gate = client._transport.app
    code = gate.once()
    assert client.get("/", params={"code": "wrong"}, follow_redirects=False).status_code == 401
    assert client.get("/", params={"code": code}, follow_redirects=False).status_code == 303
    assert client.get(INFO).status_code == 200
    assert client.get("/", params={"code": code}, follow_redirects=False).status_code == 401
    late = gate.once()
    monkeypatch.setattr("veridical.playground.gate.CODE", -1.0)
    assert client.get("/", params={"code": late}, follow_redirects=False).status_code == 401


def test_the_browser_is_not_given_the_token(monkeypatch):
    opened_at = []
    monkeypatch.setattr("webbrowser.open", opened_at.append)
    playground = serve(classifier(), port=0, open_page=True)
    try:
        (address,) = opened_at
        assert "/?code=" in address
        assert playground.token not in address
        assert httpx.get(address).status_code == 303
    finally:
        playground.stop()


def test_what_nobody_foresaw_is_answered_with_the_guarded_headers():
    async def broken(scope, receive, send):
        raise RuntimeError("unforeseen")

    gate = Gate(broken, TOKEN, "127.0.0.1")
    answer = TestClient(gate, base_url=HOME, headers={"authorization": f"Bearer {TOKEN}"}).get(INFO)
    assert answer.status_code == 500
    assert "unforeseen" in answer.json()["error"]["message"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_silent_connections_are_closed_and_deny_nobody(monkeypatch):
    monkeypatch.setattr("veridical.playground.connection.HEAD", 0.5)
    monkeypatch.setattr("veridical.playground.connection.CONNECTIONS", 20)
    playground = serve(classifier(), port=0)
    place = ("127.0.0.1", playground.port)
    silent = []
    try:
        for number in range(40):
            silent.append(socket.create_connection(place, timeout=30))
            if number % 2:
                silent[-1].sendall(b"GET / HTTP/1.1\r\nHost: 127")  # half a head
        headers = {"authorization": f"Bearer {playground.token}"}
        assert httpx.get(f"{playground.address}{INFO}", headers=headers, timeout=30).status_code == 200
        assert all(each.recv(100) == b"" for each in silent)  # closed, and nothing was said
        with socket.create_connection(place, timeout=30) as kept:  # half a head after a whole request
            kept.sendall(b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert kept.recv(20).startswith(b"HTTP/1.1 200")
            kept.sendall(b"GET / HT")
            while kept.recv(65536):
                pass
    finally:
        for each in silent:
            each.close()
        playground.stop()


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("veridical.playground.gate.HEAD", 0.3)
    playground = serve(classifier(), port=0)
    head = f"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {playground.token}\r\n"
    try:
        with socket.create_connection(("127.0.0.1", playground.port), timeout=30) as slow:
            slow.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode())
            assert slow.recv(4000).startswith(b"HTTP/1.1 400")
    finally:
        playground.stop()


@pytest.mark.parametrize("path", ["/", "/embed", "/static/none.js", INFO, "/nothing"])
def test_every_answer_has_its_policy(house, path):
    headers = house[1].get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert ("http://localhost:*" in policy) is (path == "/embed")


def test_no_page_of_others_is_served(house):
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert house[1].get(path).status_code == 404


def test_watched_pages_run_in_a_sandbox(house, client):
    key = house[0].key(house[0].watched["work"])
    answer = client.get(f"/watched/{key}/report.html")  # without token: the key is enough
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "../secret.html",
        "%2e%2e/secret.html",
        "..%2fsecret.html",
        "link.html",
        "shown.html",
        "up/secret.html",
        "/etc/passwd",
        "//etc/passwd",
        "notes.txt",
        ".hidden.html",
        "report.html%00",
        "x" * 5000 + ".html",
        "",
        ".",
    ],
)
def test_nothing_outside_a_folder_is_read(house, path):
    key = house[0].key(house[0].watched["work"])
    for prefix in (f"/watched/{key}/", "/watched/wrong/", "/static/"):
        answer = house[1].get(prefix + path)
        assert answer.status_code in (404, 405)
        assert "secret" not in answer.text


def test_a_body_is_bounded(house):
    answer = house[1].post("/api/predict", content=b"x" * (BODY + 1))
    assert answer.status_code == 413

    def pieces():
        for _ in range(BODY // 2**20 + 2):
            yield b"x" * 2**20

    assert house[1].post("/api/predict", content=pieces()).status_code == 413


def test_names_in_hosts():
    assert _name_in("LocalHost:80") == "localhost"
    assert _name_in("[::1]:80") == "::1"
    assert _name_in("a:b:c") is None
    assert is_public("0.0.0.0")
    assert is_public("::")
    assert not is_public("127.0.0.9")


# -- before it listens ----------------------------------------------------------------------------------------


def test_an_empty_host_is_said():
    with pytest.raises(InputError, match="host is empty"):
        serve(classifier(), host="", port=0)


def test_the_network_has_to_be_meant():
    with pytest.raises(InputError, match=r"0\.0\.0\.0 lets everybody .* i_know=True"):
        serve(classifier(), host="0.0.0.0", port=0)


@pytest.mark.parametrize("token", ["short", "with spaces in it, long enough", "", "ü" * 20])
def test_a_token_of_ones_own_is_a_good_one(token):
    with pytest.raises(InputError, match="it must be 16 to 200 letters"):
        serve(classifier(), token=token, port=0)


def test_a_port_in_use_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"Port {port} is in use on 127\.0\.0\.1; .*port=N"):
            listening("127.0.0.1", port)


def test_nothing_to_serve():
    with pytest.raises(InputError, match="nothing to serve"):
        serve()
    with pytest.raises(InputError, match="3 models were named"):
        serve([classifier(), classifier(), classifier()])
    with pytest.raises(InputError, match=r"has no summary\.json"):
        serve(classifier(), audit="tests")
