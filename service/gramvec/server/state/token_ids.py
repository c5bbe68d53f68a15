"""Decoding of token ids into texts by tiktoken's files, which the operator provides.

A line of such a file is a token's bytes in base64, a space, and its rank, which is its id. Decoding needs no more, and
this process downloads nothing.
"""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gramvec.errors import InputError
from gramvec.server.settings import option, token_files

# o200k_base has 200,000 tokens of at most 128 bytes in a file of 3.6 MB.
MAX_FILE_BYTES = 16 * 2**20
MAX_TOKENS = 2**20
MAX_TOKEN_BYTES = 256
# Ids that are decoded before other requests have their turn.
PIECE_IDS = 8_192


class Encoding:
    """Tokens of one encoding: `name` is that of its file, `tokens[id]` the bytes, None for an unknown id."""

    def __init__(self, name: str, tokens: Sequence[Any]) -> None:
        self.name = name
        self._tokens = tokens

    @classmethod
    def read(cls, path: Path) -> Encoding:
        """Read an encoding from a file. Raises InputError that names the file and the line at fault."""
        where = f"{option('token_ids')}: {path}"
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise InputError(f"{where}: cannot be read: {error.strerror}") from None
        if len(data) > MAX_FILE_BYTES:
            raise InputError(f"{where}: has more than {MAX_FILE_BYTES} bytes, more than any encoding")
        found: dict[int, bytes] = {}
        for number, line in enumerate(data.split(b"\n"), 1):
            if line:
                rank, token = _token(line.rstrip(b"\r"))
                if token is None or rank in found:
                    raise InputError(
                        f"{where}: line {number} is not in tiktoken's format: a token of at most "
                        f"{MAX_TOKEN_BYTES} bytes in base64, a space, and a rank of its own below {MAX_TOKENS}"
                    )
                found[rank] = token
        if not found:
            raise InputError(f"{where}: is empty; give a file of tiktoken's, with one token a line")
        return cls(path.stem, [found.get(rank) for rank in range(max(found) + 1)])

    async def bytes_of(self, ids: Sequence[Any], max_bytes: int) -> bytes:
        """Return the bytes of these ids; where they are more than `max_bytes`, at least that many of the first ones.

        Raises:
            UnknownId: an id that was decoded is not in this encoding.
        """
        size, parts = 0, []
        for start in range(0, len(ids), PIECE_IDS):
            part = ids[start : start + PIECE_IDS]
            try:
                if not {*map(type, part)} <= {int} or min(part) < 0:
                    raise IndexError
                parts.append(b"".join([self._tokens[token_id] for token_id in part]))
            except (IndexError, TypeError):
                raise UnknownId(start + self._first_unknown(part)) from None
            size += len(parts[-1])
            if size > max_bytes:
                break
            if start:
                await asyncio.sleep(0)
        return b"".join(parts)

    def _first_unknown(self, ids: Sequence[Any]) -> int:
        known = range(len(self._tokens))
        return next(
            place
            for place, token_id in enumerate(ids)
            if type(token_id) is not int or token_id not in known or self._tokens[token_id] is None
        )


class UnknownId(Exception):
    """An id that the encoding does not have, by its place in the list."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


def _token(line: bytes) -> tuple[int, bytes | None]:
    encoded, _, rank = line.partition(b" ")
    if not (rank.isdigit() and len(rank) < 8 and int(rank) < MAX_TOKENS):
        return -1, None
    try:
        token = binascii.a2b_base64(encoded, strict_mode=True)
    except binascii.Error:
        return -1, None
    return int(rank), token if 0 < len(token) <= MAX_TOKEN_BYTES else None


@lru_cache(maxsize=1)
def open_encodings(given: tuple[str, ...]) -> Mapping[str, Encoding]:
    """Return the encoding of each name in the setting `token_ids`; each file is read once. Raises InputError."""
    files = token_files(given)
    read = {path: Encoding.read(path) for path in set(files.values())}
    return {name: read[path] for name, path in files.items()}
