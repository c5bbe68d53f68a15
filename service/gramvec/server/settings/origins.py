"""What may stand in the setting `cors_origins`."""

from __future__ import annotations

import re
from collections.abc import Sequence

ANY = "*"
ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


def check_origins(origins: Sequence[str]) -> None:
    """Raise ValueError for what no browser would send as its Origin (RFC 6454)."""
    for origin in origins:
        if origin != ANY and not ORIGIN.fullmatch(origin):
            raise ValueError(
                f"{origin!r} is not an origin; give one as in https://example.org:8443, without a path, or *"
            )
        if origin != origin.lower():
            raise ValueError(f"{origin!r} never matches, browsers send it as {origin.lower()!r}; write it so")
