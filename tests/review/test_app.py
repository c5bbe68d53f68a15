from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient
from selenium.webdriver.common.by import By

from gramvec.errors import InputError
from gramvec.jobs.review.answers_file import AnswersFile
from gramvec.jobs.review.app import ReviewServer, create_review_app
from gramvec.jobs.review.pair_questions import LearnedScores, PairQuestions
from gramvec.jobs.review.session import ReviewSession
from support.browser import chromium
from support.review_job import NumberJob


@pytest.fixture
def session(tmp_path: Path) -> Iterator[ReviewSession[LearnedScores]]:
    job = NumberJob()
    opened = ReviewSession(PairQuestions(job), AnswersFile(tmp_path / "labels.csv", job.columns))
    yield opened
    opened.close()


def test_a_review_over_http(session: ReviewSession[LearnedScores]):
    ended: list[bool] = []
    client = TestClient(create_review_app(session, "token", lambda: ended.append(True)))
    page = client.get("/token/")
    assert page.status_code == 200
    assert "connect-src 'self'" in page.text
    state = client.get("/token/state").json()
    asked = state["question"]["id"]
    state = client.post("/token/answers", json={"id": asked, "answer": "yes"}).json()
    assert (state["yes"], state["can_undo"]) == (1, True)
    assert sum(state["scores"]["counts"]) == 200
    assert client.post("/token/undo").json()["question"]["id"] == asked
    assert client.post("/token/answers", json={"id": asked + 1, "answer": "no"}).status_code == 409
    assert client.post("/token/answers", json={"id": asked, "answer": "maybe"}).status_code == 409
    assert client.post("/token/finish").json()["finished"] == ["0 labels are written"]
    assert ended == [True]


def test_only_the_address_with_the_token_answers(session: ReviewSession[LearnedScores]):
    client = TestClient(create_review_app(session, "token"))
    for path in ("/", "/state", "/other/state", "/docs", "/openapi.json"):
        assert client.get(path).status_code == 404
    body = {"id": 1, "answer": "yes"}
    assert client.post("/token/answers", json=body, headers={"sec-fetch-site": "cross-site"}).status_code == 400
    assert client.post("/token/answers", content=b" " * 20_000).status_code == 400
    assert client.post("/token/answers", content=iter([b" "])).status_code == 400


def test_a_port_that_is_taken_is_told(session: ReviewSession[LearnedScores]):
    first = ReviewServer(session)
    port = int(first.address.split(":")[2].split("/")[0])
    with pytest.raises(InputError, match=f"port {port}"):
        ReviewServer(session, port)
    first._socket.close()


@pytest.fixture
def address(session: ReviewSession[LearnedScores]) -> Iterator[str]:
    server = ReviewServer(session)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server._server.started:
        time.sleep(0.01)
    yield server.address
    server.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_finish_ends_the_server(session: ReviewSession[LearnedScores]):
    server = ReviewServer(session)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server._server.started:
        time.sleep(0.01)
    assert httpx.post(server.address + "finish").status_code == 200
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.slow
def test_a_person_answers_by_keyboard(address: str, session: ReviewSession[LearnedScores], tmp_path: Path):
    with chromium(tmp_path / "profile") as browser:
        browser.get(address)
        body = browser.find_element(By.TAG_NAME, "body")
        until(lambda: body.get_attribute("data-ready") == "true")
        # A key that is pressed before the next question is shown answers nothing.
        for key, count in (("y", 1), ("n", 2), ("u", 3)):
            until(lambda: browser.find_element(By.CSS_SELECTOR, "button.yes").is_enabled())
            body.send_keys(key)
            until(lambda count=count: len(session._answered) == count)
        until(lambda: "1 yes" in body.text and "1 not sure" in body.text)
        until(lambda: browser.find_element(By.CSS_SELECTOR, "button.yes").is_enabled())
        body.send_keys("z")
        until(lambda: len(session._answered) == 2)
        assert all(button.accessible_name for button in browser.find_elements(By.TAG_NAME, "button"))
        assert "precision" in body.text
        browser.set_window_size(360, 800)
        wide, shown = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= shown
        until(lambda: browser.find_element(By.CSS_SELECTOR, "button.yes").is_enabled())
        body.send_keys("f")
        until(lambda: "2 labels are written" in body.text)
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def until(condition) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in thirty seconds")
