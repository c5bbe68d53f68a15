"""Fetch the open training data that their authors publish as one file: python training/fetch_data.py FOLDER.

training/configs/corpora/sources.toml has their addresses, sizes and digests; docs/training-data.md describes all data.
"""

from __future__ import annotations

import gzip
import hashlib
import tomllib
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Literal

import click
from pydantic import BaseModel, ConfigDict, Field

from gramvec.errors import GramvecError, InputError, ServiceError
from gramvec_training.shared import write_atomically

SOURCES = Path(__file__).parent / "configs" / "corpora" / "sources.toml"
SECONDS = 60.0


class Source(BaseModel):
    """A file of training data, and the published file that it is made from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    url: Annotated[str, Field(pattern=r"^https?://")]
    license: str
    bytes: Annotated[int, Field(gt=0, le=2**30)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    layout: Literal["lines", "codespell"]


def read_sources(path: Path = SOURCES) -> list[Source]:
    """Return the sources that a TOML file lists."""
    return [Source.model_validate(values) for values in tomllib.loads(path.read_text(encoding="utf-8"))["source"]]


def download(source: Source) -> bytes:
    """Return the published file of a source.

    Raises:
        ServiceError: the server is unreachable or refuses, or sends other bytes than those of the digest.
    """
    try:
        with urllib.request.urlopen(source.url, timeout=SECONDS) as response:  # noqa: S310 - the pattern of url
            data: bytes = response.read(source.bytes + 1)
    except (OSError, HTTPException) as error:
        raise ServiceError(f"{source.url}: cannot be fetched ({error}); try again later") from error
    if len(data) != source.bytes or hashlib.sha256(data).hexdigest() != source.sha256:
        raise ServiceError(f"{source.url}: has other bytes than {SOURCES.name} says; nothing of it was written")
    return data


def keep_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines as they are."""
    yield from lines


def pair_corrections(lines: Iterable[str]) -> Iterator[str]:
    """Yield `right<TAB>wrong` in lower case for each line `wrong->right` of codespell with one correction."""
    for line in lines:
        wrong, _, right = line.partition("->")
        if right and "," not in right:
            yield f"{right.strip()}\t{wrong}".lower()


LAYOUTS: dict[str, Callable[[Iterable[str]], Iterator[str]]] = {"lines": keep_lines, "codespell": pair_corrections}


def fetch(source: Source, folder: Path) -> Path:
    """Download a source and write its file into the folder, unless it is there; return its path.

    Raises:
        InputError: the folder cannot be written to.
        ServiceError: see `download`.
    """
    path = folder / source.file
    if path.exists():
        return path
    lines = LAYOUTS[source.layout](download(source).decode().removesuffix("\n").split("\n"))
    content = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda handle: handle.write(content))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); give another folder") from error
    return path


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def main(folder: Path) -> None:
    """Fetch the open training data into FOLDER, the folder that gramvec-train has as --data. Files there are kept."""
    for source in read_sources():
        kept = (folder / source.file).exists()
        try:
            path = fetch(source, folder)
        except GramvecError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"{path}\t{'there' if kept else source.license}")


if __name__ == "__main__":
    main()
