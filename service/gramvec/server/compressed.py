"""Compressed bodies of requests, unpacked within the limit on bodies."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from gramvec.server.errors import HttpError, large_body_error

# Window bits that zlib takes for a gzip header; a deflate body is zlib's, or, as some clients send it, raw.
_GZIP, _ZLIB, _RAW = 31, 15, -15
STEP = 256 * 1024


def unpack(raw: bytes, encoding: bytes, limit: int, reserve: Callable[[int], None]) -> bytes:
    """Return a body without its Content-Encoding (RFC 9110, section 8.4.1).

    Args:
        raw: the body as it was sent.
        encoding: the header: gzip, deflate or identity.
        limit: bytes that the unpacked body may have.
        reserve: called with the bytes of each step before they are kept; raises Overloaded.

    Raises:
        HttpError: 415 for another encoding, 400 for a body that is not of this one, 413 for one over the limit.
        Overloaded: all requests together hold too much.
    """
    name = encoding.decode("latin-1").strip().lower()
    if name == "identity":
        return raw
    if name in ("gzip", "x-gzip"):
        return _inflate(raw, name, _GZIP, limit, reserve)
    if name == "deflate":
        bits = _ZLIB if raw[:1] and raw[0] & 0x0F == 8 and int.from_bytes(raw[:2], "big") % 31 == 0 else _RAW
        return _inflate(raw, name, bits, limit, reserve)
    raise HttpError(
        415, "validation", f"Content-Encoding {name[:100]!r} is not read; send gzip, deflate, or the body as it is"
    )


def _inflate(raw: bytes, name: str, bits: int, limit: int, reserve: Callable[[int], None]) -> bytes:
    parts: list[bytes] = []
    size = 0
    decoder = zlib.decompressobj(bits)
    try:
        while not decoder.eof:
            part = decoder.decompress(raw, STEP)
            raw = decoder.unconsumed_tail
            if not part and not raw:
                break
            size += len(part)
            if size > limit:
                raise large_body_error(limit)
            reserve(len(part))
            parts.append(part)
    except zlib.error as error:
        raise HttpError(400, "validation", f"the body is not {name}: {error}") from None
    if not decoder.eof or decoder.unused_data:
        raise HttpError(400, "validation", f"the body is not one whole {name} stream; send it again")
    return b"".join(parts)
