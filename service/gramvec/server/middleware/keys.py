"""Who may ask: API keys, compared in constant time."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from gramvec.server.contract import HttpError

SCHEME = b"Bearer "


class Keys:
    """The keys that open the service; none at all leave it open to everybody."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._known = [key.encode() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._known)

    def check(self, authorization: bytes) -> None:
        """Pass a request with this Authorization header, in the form of RFC 6750, 2.1; empty if it has none.

        Raises:
            HttpError: 401, saying which part is missing or wrong.
        """
        # Every key is compared, in constant time, so that the time taken says nothing about any of them.
        given = authorization[len(SCHEME) :].strip()
        known = any([hmac.compare_digest(given, key) for key in self._known])
        if known and authorization[: len(SCHEME)].title() == SCHEME:
            return
        raise HttpError(401, "unauthorized", _what_is_wrong(authorization), {"WWW-Authenticate": "Bearer"})


def _what_is_wrong(authorization: bytes) -> str:
    scheme, _, key = authorization.partition(b" ")
    if not authorization:
        return "an API key is needed; send it as 'Authorization: Bearer KEY'"
    if scheme.title() != SCHEME.strip():
        # The header is not repeated: it may hold a key.
        return "the Authorization header does not begin with 'Bearer '; send the key as 'Authorization: Bearer KEY'"
    if not key.strip():
        return "the Authorization header ends after 'Bearer'; send the key as 'Authorization: Bearer KEY'"
    return "the API key is wrong; send one that this service was started with"
