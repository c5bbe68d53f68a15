"""Make the open training data from their authors' files: python training/fetch_data.py FOLDER.

FOLDER is the one that GRAMVEC_DATA names, with train/ and dev/. training/corpora/recipes.toml has what is fetched, and
docs/training-data.md describes all data.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tarfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

import click
from tqdm import tqdm

from corpora.making import digest_members, make_text, pack
from corpora.recipe import MAX_ARCHIVE, AuthorsFile, Recipe, Source, Table, read_table, read_withheld
from gramvec.errors import GramvecError, InputError, ServiceError
from gramvec_training.shared import write_atomically

FILES = "https://raw.githubusercontent.com"
ARCHIVES = "https://codeload.github.com"
DOWNLOADS = ".fetching"
SECONDS = 60.0  # without a byte
SLOWEST = 20_000  # bytes a second, on top of the seconds: no download lasts longer
PIECE = 2**16
MAX_MEMBERS = 100_000

Progress = Callable[[int], object]


class UnreachableError(ServiceError):
    """No server answered at all, so that another file would not come either."""


class Downloader:
    """Downloads into a folder, each continued where it stopped; a file with the right digest is not fetched again.

    mirror: address that has `OWNER/NAME/COMMIT/PATH` and `OWNER/NAME/tar.gz/COMMIT`, instead of GitHub's.
    """

    def __init__(self, folder: Path, *, mirror: str | None = None) -> None:
        self._folder = folder
        self._files = self._archives = mirror and mirror.rstrip("/")

    def read(self, source: Source, progress: Progress = lambda _: None) -> list[AuthorsFile]:
        """Return the files of a source, in its order.

        Raises:
            ServiceError: The server is unreachable or refuses, or sends other bytes than those of the digests.
            OSError: The folder cannot be written to.
        """
        if source.archive is not None:
            return self._read_archive(source, progress)
        read: list[AuthorsFile] = []
        for file in source.files:
            path = self._folder / source.repository / source.commit / file.path
            url = f"{self._files or FILES}/{source.repository}/{source.commit}/{urllib.request.quote(file.path)}"
            if not path.is_file():
                self._download(url, path, file.bytes, progress)
            else:
                progress(file.bytes)
            data = path.read_bytes()
            if len(data) != file.bytes or hashlib.sha256(data).hexdigest() != file.sha256:
                path.unlink()
                raise ServiceError(f"{url}: has other bytes than recipes.toml says; nothing of it was written")
            read.append(AuthorsFile(file.path, data))
        return read

    def _read_archive(self, source: Source, progress: Progress) -> list[AuthorsFile]:
        archive = source.archive
        assert archive is not None
        path = self._folder / source.repository / f"{source.commit}.tar.gz"
        url = f"{self._archives or ARCHIVES}/{source.repository}/tar.gz/{source.commit}"
        if not path.is_file():
            with tqdm(desc=source.repository, unit="B", unit_scale=True, disable=None, leave=False) as bar:
                self._download(url, path, None, bar.update)
        try:
            members = list(_read_members(path, re.compile(archive.members), archive.bytes))
        except (tarfile.TarError, EOFError, OSError, ValueError) as error:
            path.unlink()
            raise ServiceError(f"{url}: is no archive of the repository ({error}); try again later") from error
        if digest_members(members) != archive.sha256:
            path.unlink()
            raise ServiceError(f"{url}: has other files than recipes.toml says; nothing of it was written")
        progress(archive.bytes)
        return sorted(members)

    def _download(self, url: str, path: Path, size: int | None, progress: Progress) -> None:
        """Write what the address has to the path; of at most `size` bytes, and beside it until it is whole."""
        part = path.with_name(f"{path.name}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        most = MAX_ARCHIVE if size is None else size
        begun = part.stat().st_size if part.is_file() else 0
        if size is None or begun >= most:
            begun = 0  # an archive is made anew for each request, and is not continued
        request = urllib.request.Request(url, headers={"Range": f"bytes={begun}-"} if begun else {})  # noqa: S310
        ends = time.monotonic() + SECONDS + most / SLOWEST
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:  # noqa: S310 - https, or the mirror given
                if begun and not response.headers.get("Content-Range", "").startswith(f"bytes {begun}-"):
                    begun = 0
                progress(begun)
                with part.open("ab" if begun else "wb") as handle:
                    length = begun
                    while piece := response.read1(PIECE):
                        length += len(piece)
                        if length > most:
                            raise ServiceError(f"{url}: has more than the {most:,} bytes that recipes.toml says")
                        if time.monotonic() > ends:
                            raise TimeoutError(f"took more than {SECONDS + most / SLOWEST:.0f} seconds")
                        handle.write(piece)
                        progress(len(piece))
        except ServiceError:
            part.unlink(missing_ok=True)
            raise
        except HTTPError as error:
            raise ServiceError(f"{url}: cannot be fetched ({error.code} {error.reason}); try again later") from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise UnreachableError(
                f"{url}: cannot be fetched ({reason}); check the network and call again, which goes on where this "
                "stopped, or bring a folder with the data: docs/training-data.md describes it"
            ) from error
        part.replace(path)


def _read_members(path: Path, wanted: re.Pattern[str], most: int) -> Iterator[AuthorsFile]:
    """Yield the files of an archive whose paths, below its one folder, are wanted.

    Raises:
        ValueError: They are more, or larger together, than a recipe can have.
    """
    read = 0
    with tarfile.open(path, "r:gz") as archive:
        for count, member in enumerate(archive):
            name = member.name.partition("/")[2]
            if count > MAX_MEMBERS:
                raise ValueError(f"it has more than {MAX_MEMBERS:,} files")
            if member.isfile() and wanted.fullmatch(name):
                read += member.size
                if read > most:
                    raise ValueError(f"its files have more than {most:,} bytes")
                handle = archive.extractfile(member)
                assert handle is not None
                yield AuthorsFile(name, handle.read())


def fetch(recipe: Recipe, folder: Path, downloader: Downloader, progress: Progress = lambda _: None) -> Path:
    """Make the file of a recipe in the folder, unless it is there; return its path.

    Raises:
        InputError: The folder cannot be written to.
        ServiceError: See `Downloader.read`; or what was fetched does not make the file.
    """
    path = folder / recipe.file
    if path.exists():
        progress(recipe.size)
        return path
    try:
        files = [file for source in recipe.sources for file in downloader.read(source, progress)]
        content = pack(recipe, make_text(recipe, files, read_withheld()))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda handle: handle.write(content))
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        raise ServiceError(f"{recipe.file}: cannot be made of its authors' files ({error})") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); give another folder") from error
    return path


def fetch_all(table: Table, folder: Path, *, mirror: str | None = None) -> dict[str, str]:
    """Make all files of the table that are not there, under a bar; return why each that is missing is, by its name.

    Raises:
        UnreachableError: No server answers; no other set is tried.
    """
    downloader = Downloader(folder / DOWNLOADS, mirror=mirror)
    failed: dict[str, str] = {}
    wanted = [recipe for recipe in table.recipes if not (folder / recipe.file).exists()]
    with tqdm(
        total=sum(recipe.size for recipe in wanted), unit="B", unit_scale=True, disable=None, file=sys.stderr
    ) as bar:
        for recipe in wanted:
            bar.set_description(recipe.name)
            try:
                fetch(recipe, folder, downloader, bar.update)
            except UnreachableError:
                raise
            except GramvecError as error:
                failed[recipe.name] = str(error)
    if not failed:
        shutil.rmtree(folder / DOWNLOADS, ignore_errors=True)
    return failed


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--only", "names", multiple=True, metavar="NAME",
              help="A set, as tatoeba_pivot, or a folder of sets, as dev/sts16; may be repeated.")  # fmt: skip
@click.option("--mirror", metavar="URL", help="Where OWNER/NAME/COMMIT/PATH lies, instead of GitHub.")
def main(folder: Path, names: tuple[str, ...], mirror: str | None) -> None:
    """Make the open training data in FOLDER, as GRAMVEC_DATA names it. Files there are kept, a stop is continued."""
    try:
        table = read_table().select(names)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    there = {recipe.name for recipe in table.recipes if (folder / recipe.file).exists()}
    try:
        failed = fetch_all(table, folder, mirror=mirror)
    except UnreachableError as error:
        raise click.ClickException(str(error)) from error
    for recipe in table.recipes:
        if recipe.name not in failed:
            state = "kept" if recipe.name in there else f"{recipe.lines:,} lines, {recipe.license}"
            click.echo(f"{folder / recipe.file}\t{state}")
    for missing in table.missing:
        click.echo(f"{', '.join(missing.files)}: not fetched, because {missing.why}", err=True)
    for name, why in failed.items():
        click.echo(f"{name}: missing; {why}", err=True)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
