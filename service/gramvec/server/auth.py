"""Keys of requests."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from gramvec.server.errors import HttpError

SCHEME = b"Bearer "


class Auth:
    """Keys, compared in constant time.

    Args:
        keys: that open.
        kind: what messages call them.
    """

    def __init__(self, keys: Iterable[str], kind: str = "an API key") -> None:
        self._known = [key.encode() for key in keys]
        self._kind = kind

    def check(self, authorization: bytes, api_key: bytes | None = None) -> None:
        """Accept a request with this Authorization header (RFC 6750, section 2.1), empty if it has none.

        `api_key` is the header of this name, which Azure's clients send instead; None if there is none.

        Raises:
            HttpError: 401 that names the part that is missing or wrong.
        """
        if api_key is not None and not authorization:
            authorization = SCHEME + api_key
        # Every key is compared, in constant time, so that the time taken reveals nothing about any of them.
        given = authorization[len(SCHEME) :].strip()
        known = any([hmac.compare_digest(given, key) for key in self._known])
        if known and authorization[: len(SCHEME)].title() == SCHEME:
            return
        raise HttpError(401, "unauthorized", _auth_problem(authorization, self._kind), {"WWW-Authenticate": "Bearer"})


def _auth_problem(authorization: bytes, kind: str) -> str:
    scheme, _, key = authorization.partition(b" ")
    if not authorization:
        return f"{kind} is needed; send it as 'Authorization: Bearer KEY'"
    if scheme.title() != SCHEME.strip():
        # The header is not repeated: it may hold a key.
        return "the Authorization header does not begin with 'Bearer '; send the key as 'Authorization: Bearer KEY'"
    if not key.strip():
        return "the Authorization header ends after 'Bearer'; send the key as 'Authorization: Bearer KEY'"
    return f"the {kind.partition(' ')[2]} is wrong; send one that this service was started with"
