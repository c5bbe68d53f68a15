"""A page of another origin asks as a browser does, with a key and without; and keys, wherever they come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from gramvec import Embedder
from gramvec.cli.serve import serve
from gramvec.errors import InputError
from gramvec.server.auth import Auth
from gramvec.server.edge import run as http_server
from gramvec.server.errors import HttpError
from gramvec.server.settings import Settings, settings_from
from support.http import PATIENCE, RunningServer, running

PAGE = "https://page.example"
KEY = {"authorization": "Bearer the-key"}


class Browser:
    """A page's fetch(), as the Fetch standard has it: asks first where it must, and hides what it may not show."""

    def __init__(self, url: str, origin: str) -> None:
        self._url = url
        self._origin = origin
        self.preflight: httpx.Response | None = None

    def fetch(self, method: str, path: str, headers: dict[str, str], **options: Any) -> httpx.Response:
        """The answer. Raises PermissionError where the browser would show the page an error instead."""
        asked = sorted(name.lower() for name in headers)
        question = {"access-control-request-method": method, "access-control-request-headers": ",".join(asked)}
        self.preflight = self._request("OPTIONS", path, question)
        self._check_origin(self.preflight)
        if not self.preflight.is_success:
            raise PermissionError("the preflight failed")
        allowed = self._list(self.preflight, "access-control-allow-headers")
        if method not in {one.upper() for one in self._list(self.preflight, "access-control-allow-methods")}:
            raise PermissionError(method)
        for name in asked:
            # The wildcard does not stand for Authorization.
            if name not in allowed and not ("*" in allowed and name != "authorization"):
                raise PermissionError(name)
        answer = self._request(method, path, headers, **options)
        self._check_origin(answer)
        return answer

    def readable(self, answer: httpx.Response) -> set[str]:
        """The headers that the page's script may read, beside the few that are always readable."""
        return self._list(answer, "access-control-expose-headers")

    def _request(self, method: str, path: str, headers: dict[str, str], **options: Any) -> httpx.Response:
        with_origin = {**headers, "origin": self._origin}
        return httpx.request(method, self._url + path, headers=with_origin, timeout=PATIENCE, **options)

    def _check_origin(self, answer: httpx.Response) -> None:
        if answer.headers.get("access-control-allow-origin") not in (self._origin, "*"):
            raise PermissionError("origin")

    @staticmethod
    def _list(answer: httpx.Response, name: str) -> set[str]:
        return {one.strip().lower() for one in answer.headers.get(name, "").split(",")}


@pytest.fixture(scope="module", params=[PAGE, "*"])
def guarded(embedder: Embedder, request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    chosen = {"api_key": ["the-key"], "cors_origins": [request.param], "max_texts": 5, "queue_texts": 5}
    with running(Settings.model_validate(chosen), embedder) as server:
        yield server


def test_a_page_can_send_its_key(guarded: RunningServer) -> None:
    browser = Browser(guarded.url, PAGE)
    headers = {**KEY, "content-type": "application/json", "x-request-id": "of-the-page"}
    answer = browser.fetch("POST", "/embed", headers, json={"inputs": ["a", "b"]})
    assert answer.status_code == 200
    assert answer.headers["x-request-id"] == "of-the-page"
    assert browser.preflight is not None
    assert int(browser.preflight.headers["access-control-max-age"]) >= 600
    ours = {name for name in answer.headers if name.startswith("x-")}
    assert ours <= browser.readable(answer)


def test_the_headers_that_a_client_adds_of_its_own_are_allowed(guarded: RunningServer) -> None:
    # As the openai package for browsers does.
    headers = {**KEY, "content-type": "application/json", "x-stainless-os": "Unknown", "x-stainless-lang": "js"}
    answer = Browser(guarded.url, PAGE).fetch("POST", "/v1/embeddings", headers, json={"input": "a"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "key", "body", "status"),
    [
        ("POST", "/embed", {}, {"inputs": "a"}, 401),
        ("POST", "/embed", KEY, {"inputs": 5}, 422),
        ("POST", "/embed", KEY, {"inputs": ["a"] * 6}, 413),
        ("POST", "/nowhere", KEY, {}, 404),
        ("GET", "/embed", KEY, {}, 405),
        ("GET", "/info", KEY, {}, 200),
        ("GET", "/health", {}, {}, 200),
    ],
)
def test_a_page_can_read_what_went_wrong(
    guarded: RunningServer, method: str, path: str, key: dict[str, str], body: Any, status: int
) -> None:
    browser = Browser(guarded.url, PAGE)
    answer = browser.fetch(method, path, {**key, "content-type": "application/json"}, json=body)
    assert answer.status_code == status
    assert {"retry-after", "x-request-id"} <= browser.readable(answer)
    vary = [one.strip().lower() for value in answer.headers.get_list("vary") for one in value.split(",")]
    assert "origin" in vary


def test_pages_of_other_origins_are_told_nothing(embedder: Embedder) -> None:
    with running(Settings(cors_origins=(PAGE,)), embedder) as server:
        for origin in ("https://other.example", "https://page.example.evil", "http://page.example", "null"):
            with pytest.raises(PermissionError, match="origin"):
                Browser(server.url, origin).fetch("POST", "/embed", {"content-type": "application/json"}, json={})
        # A cache must not give a page the answer that was made for no page.
        answer = httpx.post(f"{server.url}/embed", json={"inputs": "a"})
        assert answer.headers["vary"] == "Origin"
        assert "access-control-allow-origin" not in answer.headers


def test_without_the_setting_there_is_no_cors(plain_server: RunningServer) -> None:
    url = plain_server.url
    with pytest.raises(PermissionError):
        Browser(url, PAGE).fetch("POST", "/embed", {"content-type": "application/json"}, json={})
    answer = httpx.post(f"{url}/embed", json={"inputs": "a"}, headers={"origin": PAGE})
    assert not [name for name in answer.headers if name.startswith("access-control") or name == "vary"]
    answer = httpx.options(f"{url}/embed", headers={"origin": PAGE})
    assert (answer.status_code, answer.headers["allow"]) == (204, "OPTIONS, POST")
    assert not [name for name in answer.headers if name.startswith("access-control")]
    for method, status in (("OPTIONS", 204), ("GET", 404)):  # RFC 9110, section 9.3.7: the server as a whole
        with httpx.Client() as client:
            answer = client.request(method, url, extensions={"target": b"*"})
        assert answer.status_code == status
        assert answer.headers.get("allow") == ("GET, HEAD, OPTIONS, POST" if status == 204 else None)
    # What a form of such a page can send without asking is not read.
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = httpx.post(f"{url}/embed", content='{"inputs": "a"}', headers={"content-type": media_type})
        assert answer.status_code == 415


@pytest.mark.parametrize(
    "origin", ["page.example", "https://page.example/", "https://page.example/x", "//a", "", "https://A.example"]
)
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(InputError, match="cors_origins.*--cors-origins"):
        settings_from({"cors_origins": [origin]})


@pytest.mark.parametrize(
    "origin",
    [
        *("https://page.example", "http://localhost:3000", "http://[::1]:8080", "*", "null", "http://localhost:*"),
        *("chrome-extension://abcdefgh", "app://obsidian.md", "tauri://localhost", "capacitor://localhost"),
    ],
)
def test_origins_as_browsers_send_them(origin: str) -> None:
    assert settings_from({"cors_origins": [origin]}).cors_origins == (origin,)


@pytest.mark.parametrize("given_header", ["Bearer the-key", "bearer the-key", "BEARER  the-key ", "Bearer other-key"])
def test_a_known_key_passes(given_header: str) -> None:
    Auth(["the-key", "other-key"]).check(given_header.encode())


@pytest.mark.parametrize(
    ("given_header", "words"),
    [
        ("", "is needed"),
        ("the-key", "begin"),
        ("Basic dGhlLWtleQ==", "begin"),
        ("Token the-key", "begin"),
        ("Bearerthe-key", "begin"),
        ("Bearer", "ends"),
        ("Bearer ", "ends"),
        ("Bearer the-ke", "is wrong"),
        ("Bearer the-key2", "is wrong"),
        ("Bearer the-key other-key", "is wrong"),
        ("Bearer THE-KEY", "is wrong"),
        ("Bearer \xff", "is wrong"),
    ],
)
def test_what_does_not_pass_is_told_why_without_the_key(given_header: str, words: str) -> None:
    with pytest.raises(HttpError, match=words) as raised:
        Auth(["the-key"]).check(given_header.encode("latin-1"))
    assert raised.value.status == 401
    assert raised.value.headers == {"WWW-Authenticate": "Bearer"}
    assert "the-key" not in str(raised.value)


def test_a_public_page_is_public_to_readers_only(guarded: RunningServer) -> None:
    assert httpx.head(f"{guarded.url}/health").status_code != 401
    for path in ("/", "/health", "/metrics", "/docs"):
        assert httpx.post(f"{guarded.url}{path}", json={"inputs": "a"}).status_code == 401


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    collected: list[Settings] = []
    monkeypatch.setattr(http_server, "serve", collected.append)
    return collected


def test_keys_of_a_file_open_beside_those_of_the_flags(used: list[Settings], tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_text("# of the shop\nfirst-key\r\n\n  second-key  \n", newline="")
    result = CliRunner().invoke(serve, ["--api-key", "third-key"], env={"GRAMVEC_API_KEY_FILE": str(file)})
    assert result.exit_code == 0, result.output
    assert used[0].read_keys() == ["third-key", "first-key", "second-key"]
    assert "first-key" not in repr(used[0])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"", "holds no key"),
        (b"# none\n\n", "holds no key"),
        (b"a-secret key\n", "without spaces"),
        (b"a-secret\xff\n", "not ASCII"),
    ],
)
def test_a_bad_key_file_is_one_sentence_without_a_key(
    used: list[Settings], tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "keys.txt"
    if content is not None:
        file.write_bytes(content)
    result = CliRunner().invoke(serve, ["--api-key-file", str(file)])
    assert result.exit_code == 2
    (error,) = (line for line in result.output.splitlines() if line.startswith("Error: "))
    assert words in error
    assert "secret" not in result.output
    assert not used
