"""Token ids of other services' encodings back into texts, by files of tiktoken's that somebody has put there.

A line of such a file is a token's bytes in base64, a space, and its rank, which is its id. To decode needs no more: the
merges and the pattern that encode are tiktoken's, and this process fetches nothing.
"""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gramvec.errors import InputError
from gramvec.server.settings import OTHERS, Settings, option, token_files

# o200k_base has 200,000 tokens of at most 128 bytes in a file of 3.6 MB.
MOST_FILE_BYTES = 16 * 2**20
MOST_TOKENS = 2**20
MOST_TOKEN_BYTES = 256
# Decoded before other requests have their turn.
PIECE = 8_192


class Encoding:
    """One encoding's tokens. `name` is its file's, `tokens[id]` the bytes, None for an id that there is not."""

    def __init__(self, name: str, tokens: Sequence[Any]) -> None:
        self.name = name
        self._tokens = tokens

    @classmethod
    def read(cls, path: Path) -> Encoding:
        """The encoding of a file. Raises InputError, a sentence that names the file, and the line at fault."""
        where = f"{option('token_ids')}: {path}"
        try:
            with path.open("rb") as file:
                data = file.read(MOST_FILE_BYTES + 1)
        except OSError as error:
            raise InputError(f"{where} cannot be read: {error.strerror}") from None
        if len(data) > MOST_FILE_BYTES:
            raise InputError(f"{where} has more than {MOST_FILE_BYTES} bytes, which no encoding has")
        found: dict[int, bytes] = {}
        for number, line in enumerate(data.split(b"\n"), 1):
            if line:
                rank, token = _token(line.rstrip(b"\r"))
                if token is None or rank in found:
                    raise InputError(
                        f"{where}: line {number} is none of tiktoken's files: a token of at most "
                        f"{MOST_TOKEN_BYTES} bytes in base64, a space, and a rank of its own below {MOST_TOKENS}"
                    )
                found[rank] = token
        if not found:
            raise InputError(f"{where} is empty; it is to be a file of tiktoken's, a token a line")
        return cls(path.stem, [found.get(rank) for rank in range(max(found) + 1)])

    async def bytes_of(self, ids: Sequence[Any], most_bytes: int) -> bytes:
        """What these ids stand for; of more than `most_bytes` bytes some of the first, at least so many.

        Raises:
            UnknownId: one of those that were looked at is no id of this encoding.
        """
        size, parts = 0, []
        for start in range(0, len(ids), PIECE):
            part = ids[start : start + PIECE]
            try:
                if not {*map(type, part)} <= {int} or min(part) < 0:
                    raise IndexError
                parts.append(b"".join([self._tokens[one] for one in part]))
            except (IndexError, TypeError):
                raise UnknownId(start + self._first_unknown(part)) from None
            size += len(parts[-1])
            if size > most_bytes:
                break
            if start:
                await asyncio.sleep(0)
        return b"".join(parts)

    def _first_unknown(self, ids: Sequence[Any]) -> int:
        known = range(len(self._tokens))
        return next(
            place
            for place, one in enumerate(ids)
            if type(one) is not int or one not in known or self._tokens[one] is None
        )


class UnknownId(Exception):
    """The place of one."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


def _token(line: bytes) -> tuple[int, bytes | None]:
    encoded, _, rank = line.partition(b" ")
    if not (rank.isdigit() and len(rank) < 8 and int(rank) < MOST_TOKENS):
        return -1, None
    try:
        token = binascii.a2b_base64(encoded, strict_mode=True)
    except binascii.Error:
        return -1, None
    return int(rank), token if 0 < len(token) <= MOST_TOKEN_BYTES else None


class Encodings:
    """Which encoding the ids of a request are of: by the model's name in it, else the one that holds for all."""

    def __init__(self, by_name: Mapping[str, Encoding]) -> None:
        self._by_name = by_name

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def of(self, model: object) -> Encoding | None:
        """The encoding for this name; None where there is none."""
        named = self._by_name.get(model) if isinstance(model, str) else None
        return named or self._by_name.get(OTHERS)


def open_encodings(settings: Settings) -> Encodings:
    """Those of the settings, each file read once in a process. Raises InputError."""
    return _opened(settings.token_ids)


@lru_cache(maxsize=1)
def _opened(given: tuple[str, ...]) -> Encodings:
    files = token_files(given)
    read = {path: Encoding.read(path) for path in set(files.values())}
    return Encodings({name: read[path] for name, path in files.items()})
