"""The page of a review, as a FastAPI application for 127.0.0.1. Its address has a secret token."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from threading import Timer
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from gramvec.errors import GramvecError, InputError
from gramvec.jobs.report.page import render, to_json
from gramvec.jobs.review.session import ReviewSession

HOST = "127.0.0.1"
# Longer than the page waits between two questions about what finishing does.
LINGER_SECONDS = 1.5
MAX_BODY_BYTES = 10_000
MAX_ANSWER = 1_000  # characters
HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}


class ReviewAnswer(BaseModel):
    """An answer to the question that is shown."""

    model_config = ConfigDict(extra="forbid")
    id: int
    answer: Annotated[str, Field(max_length=MAX_ANSWER)]


def create_review_app(
    session: ReviewSession[Any], token: str, on_finished: Callable[[], None] = lambda: None
) -> FastAPI:
    """Return the application: the page at /TOKEN/, and what it asks below it.

    Args:
        session: the review.
        token: a secret part of every address. Any other address is not found.
        on_finished: called after the response to a successful `finish`.
    """
    app = FastAPI(title="gramvec review", openapi_url=None, docs_url=None, redoc_url=None)
    router = APIRouter(prefix=f"/{token}")

    @router.get("/")
    def show_page() -> HTMLResponse:
        """Return the page."""
        subject = session.subject
        data = to_json({"title": subject.title, "question": subject.question, "kind": subject.kind})
        return HTMLResponse(render(subject.title, data, page_script="review.js", connect="'self'"), headers=HEADERS)

    @router.get("/state")
    def read_state() -> Response:
        """Return the question that is asked now, and what was answered."""
        return _json(session.state())

    @router.get("/work")
    def read_work() -> Response:
        """Return what finishing does now; it does not wait for it."""
        return _json(session.work.show())

    @router.post("/answers")
    def add_answer(answer: ReviewAnswer) -> Response:
        """Write an answer, and return the next question."""
        session.answer(answer.id, answer.answer)
        return _json(session.state())

    @router.post("/undo")
    def undo_answer() -> Response:
        """Take back the last answer."""
        session.undo()
        return _json(session.state())

    @router.post("/finish")
    def finish_review() -> Response:
        """Write what the review made."""
        session.finish()
        on_finished()
        return _json(session.state())

    @app.exception_handler(GramvecError)
    def refuse(request: Request, error: GramvecError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 409, headers=HEADERS)

    @app.exception_handler(OSError)
    def report_disk(request: Request, error: OSError) -> JSONResponse:
        return JSONResponse({"error": f"the answer is not written: {error.strerror}"}, 507, headers=HEADERS)

    app.include_router(router)
    app.add_middleware(_LimitedBody)
    return app


def _json(state: dict[str, Any]) -> Response:
    return Response(to_json(state), media_type="application/json", headers=HEADERS)


class _LimitedBody:
    """Refuses requests with a body that no answer has, and those of pages of other origins."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        too_large = not length.isdigit() or len(length) > 9 or int(length) > MAX_BODY_BYTES
        foreign = headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none")
        if too_large or b"transfer-encoding" in headers or (foreign and scope["method"] != "GET"):
            await Response("refused", 400, headers=HEADERS)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class ReviewServer:
    """A server of one review on a free port of 127.0.0.1.

    Args:
        session: the review.
        port: the port; 0 takes a free one.

    Raises:
        InputError: the port is taken.
    """

    def __init__(self, session: ReviewSession[Any], port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
            self._socket.listen()  # so that a browser that opens the address at once waits
        except OSError as error:
            self._socket.close()
            raise InputError(f"port {port} of {HOST} is taken; give another `port`") from error
        token = secrets.token_urlsafe(24)
        self.address = f"http://{HOST}:{self._socket.getsockname()[1]}/{token}/"
        app = create_review_app(session, token, self._stop_soon)
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", timeout_keep_alive=5,
                                timeout_graceful_shutdown=5)  # fmt: skip
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until the review is finished, or SIGINT or SIGTERM ends it."""
        self._server.run(sockets=[self._socket])

    def _stop_soon(self) -> None:
        """Stop after what the page may have asked meanwhile is answered."""
        later = Timer(LINGER_SECONDS, self.stop)
        later.daemon = True
        later.start()

    def stop(self) -> None:
        """Stop after the responses that are under way."""
        self._server.should_exit = True
