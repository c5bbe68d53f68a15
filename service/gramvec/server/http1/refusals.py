"""What is answered where no request can be made of what a client sends: nothing behind it is read any more."""

from __future__ import annotations

from http import HTTPStatus

from gramvec.server.errors import ErrorType, HttpError
from gramvec.server.responses import described, error_response


class Refused(Exception):
    """The client is told, and the connection is closed.

    `retry` are the seconds of a Retry-After, 0 for none.
    """

    def __init__(self, status: int, sentence: str, *, error_type: ErrorType = "validation", retry: int = 0) -> None:
        super().__init__(sentence)
        self.status = status
        self._error_type: ErrorType = error_type
        self._retry = retry

    def answer(self, target: bytes = b"") -> bytes:
        """The whole answer, in OpenAI's shape where the target of the request is below /v1."""
        headers = {"Connection": "close"} | ({"Retry-After": str(self._retry)} if self._retry else {})
        path = target.partition(b"?")[0].decode("latin-1")
        refusal = error_response(HttpError(self.status, self._error_type, str(self), headers), path)
        first = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}".encode()
        return b"\r\n".join([first, *(b"%b: %b" % header for header in described(refusal)), b"", *refusal.body])


def not_http() -> Refused:
    """What came is none of HTTP/1.1."""
    return Refused(400, "the request is not HTTP/1.1; send it anew on another connection")


def ambiguous(what: str) -> Refused:
    """A head that two readers could understand in two ways, or that the standard forbids (RFC 9112, 3.2 and 6.3)."""
    return Refused(400, what)


def large_head(limit: int) -> Refused:
    """A request line and headers of too many bytes."""
    return Refused(431, f"the request line and headers are larger than the limit of {limit} bytes; send less in them")


def many_lines(limit: int) -> Refused:
    """Too many headers."""
    return Refused(431, f"the request has more than {limit} header lines; send fewer")


def large_extensions(limit: int) -> Refused:
    """Of a body in chunks."""
    return Refused(
        431, f"the extensions of the body's chunks are larger than the limit of {limit} bytes; leave them out"
    )


def large_trailer(limit: int) -> Refused:
    """Of a body in chunks."""
    return Refused(431, f"the trailer is larger than the limit of {limit} bytes; send less in it")


def slow_head(seconds: float) -> Refused:
    """Headers that have begun and do not come to an end."""
    return Refused(408, f"the headers did not arrive within {seconds:g} s; send the request anew")


def slow_body(seconds: float) -> Refused:
    """A body that does not come, or in drops."""
    return Refused(408, f"the body did not arrive within {seconds:g} s or so; send it anew, faster")


def many_connections() -> Refused:
    """One more than there may be."""
    sentence = (
        "the service has as many connections as it takes; try again later, or use one connection for many requests"
    )
    return Refused(503, sentence, error_type="unhealthy", retry=1)


def much_unread(limit: int) -> Refused:
    """All connections together hold too much of which no request could be made yet."""
    sentence = f"unfinished heads and requests sent ahead hold more than {limit} bytes; send the request again later"
    return Refused(503, sentence, error_type="unhealthy", retry=1)
