"""The file that the setting `api_keys_file` names."""

from __future__ import annotations

from pathlib import Path


def read_keys(path: Path) -> list[str]:
    """The keys of a file, one a line; empty lines and those that begin with # are passed over.

    Raises:
        ValueError: a sentence that names the file: it cannot be read, or holds no key.
    """
    try:
        lines = path.read_text(encoding="ascii").split("\n")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        # Not chained: its text has the bytes that were read.
        raise ValueError(f"{path} is not ASCII; a key is printable ASCII without spaces") from None
    stripped = [line.strip() for line in lines]
    keys = [line for line in stripped if line and not line.startswith("#")]
    if not keys:
        raise ValueError(f"{path} holds no key; write one a line")
    return keys
