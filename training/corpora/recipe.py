"""What a recipe says, and the table of all: recipes.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

TABLE = Path(__file__).parent / "recipes.toml"
WITHHELD = Path(__file__).parent / "withheld.txt"
MAX_FILE = 2**26  # bytes of one file of the authors; the largest that a recipe names has 8 MB
MAX_ARCHIVE = 2**31  # bytes of a repository as one archive

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Length = Annotated[int, Field(gt=0, le=MAX_FILE)]


class AuthorsFile(NamedTuple):
    """A file as its authors have it: its path in their repository, and its bytes."""

    path: str
    data: bytes

    @property
    def text(self) -> str:
        """Return the text; bytes that are no UTF-8 become U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @property
    def lines(self) -> list[str]:
        """Return the lines, cut at line feeds alone; an empty one at the end does not count."""
        return self.text.rstrip("\n").split("\n")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PublishedFile(_Strict):
    """A file of a repository: its path, its length in bytes, and its SHA-256."""

    path: str
    bytes: Length
    sha256: Digest


class Archive(_Strict):
    """Files of a repository that are so many that the whole is fetched.

    members: pattern of their paths. sha256: over their paths and contents, in the order of their paths. bytes: of all.
    """

    members: str
    bytes: Annotated[int, Field(gt=0, le=MAX_ARCHIVE)]
    sha256: Digest


class Source(_Strict):
    """Files of a repository at a commit."""

    repository: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")]
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    files: tuple[PublishedFile, ...] = ()
    archive: Archive | None = None

    @property
    def size(self) -> int:
        """Return the bytes of the files."""
        return sum(file.bytes for file in self.files) + (self.archive.bytes if self.archive is not None else 0)


class Recipe(_Strict):
    """A file of training data, and how it is made.

    file: its path in the data's folder. reader: the function of `readers` that reads the authors' files, and columns:
    what it reads of them. at_most: of the wordings of one meaning. entities: those of HTML, and zero-width spaces, stay
    as the authors have them. lines, sha256: of the unpacked result. differs: how the file differs from that which the
    shipped models are trained on; the same bytes, where it is empty.
    """

    file: Annotated[str, Field(pattern=r"^(train|dev)/[A-Za-z0-9_./-]+$")]
    license: str
    reader: str
    columns: tuple[str, ...] = ()
    at_most: int | None = None
    entities: bool = False
    lines: int
    sha256: Digest
    differs: str = ""
    sources: tuple[Source, ...]

    @property
    def name(self) -> str:
        """Return the path below train/ or dev/ up to its first dot, as `freq/enwiki_vocab_min200`."""
        return self.file.partition("/")[2].split(".", 1)[0]

    @property
    def size(self) -> int:
        """Return the bytes of the authors' files."""
        return sum(source.size for source in self.sources)


class Fingerprint(_Strict):
    """Length in bytes of one of the authors' files, and its SHA-256."""

    bytes: Length
    sha256: Digest


class SetOfSeries(_Strict):
    """One set of a series: its name, the lines and the SHA-256 of the result, and the authors' files."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
    lines: int
    sha256: Digest
    files: tuple[Fingerprint, ...]


class Series(_Strict):
    """Sets that are alike: `{}` in the file and in the authors' paths stands for the name of each."""

    file: str
    license: str
    reader: str
    columns: tuple[str, ...] = ()
    repository: str
    commit: str
    paths: tuple[str, ...]
    sets: tuple[SetOfSeries, ...]

    def list_recipes(self) -> list[Recipe]:
        """Return the recipe of each set."""
        return [
            Recipe(
                file=self.file.replace("{}", one.name),
                license=self.license,
                reader=self.reader,
                columns=self.columns,
                lines=one.lines,
                sha256=one.sha256,
                sources=(self._name_files(one),),
            )
            for one in self.sets
        ]

    def _name_files(self, one: SetOfSeries) -> Source:
        files = tuple(
            PublishedFile(path=path.replace("{}", one.name), bytes=file.bytes, sha256=file.sha256)
            for path, file in zip(self.paths, one.files, strict=True)
        )
        return Source(repository=self.repository, commit=self.commit, files=files)


class Missing(_Strict):
    """Files that no recipe makes, and why."""

    files: tuple[str, ...]
    why: str


class Table(NamedTuple):
    """All recipes, and what has none."""

    recipes: list[Recipe]
    missing: list[Missing]

    def select(self, names: Sequence[str]) -> Table:
        """Return what has one of the names: as the end of its path, or as a folder around it below train/ or dev/.

        Raises:
            ValueError: A name fits nothing.
        """
        every = [recipe.file for recipe in self.recipes] + [file for missing in self.missing for file in missing.files]
        for name in names:
            if not any(_fits(name, file) for file in every):
                raise ValueError(f"there is no {name!r}; there are {', '.join(recipe.name for recipe in self.recipes)}")
        if not names:
            return self
        return Table(
            [recipe for recipe in self.recipes if any(_fits(name, recipe.file) for name in names)],
            [
                missing.model_copy(update={"files": files})
                for missing in self.missing
                if (files := tuple(file for file in missing.files if any(_fits(name, file) for name in names)))
            ],
        )


def _fits(name: str, file: str) -> bool:
    path = file.split(".", 1)[0]
    _, _, below = path.partition("/")  # without train/ or dev/
    return path.endswith(f"/{name}") or any(f"{one}/".startswith(f"{name.rstrip('/')}/") for one in (path, below))


def read_table(path: Path = TABLE) -> Table:
    """Return the table that a TOML file has."""
    values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    series = [Series.model_validate(one) for one in values.get("series", ())]
    return Table(
        [Recipe.model_validate(one) for one in values["set"]]
        + [recipe for alike in series for recipe in alike.list_recipes()],
        [Missing.model_validate(one) for one in values.get("missing", ())],
    )


def read_withheld(path: Path = WITHHELD) -> frozenset[str]:
    """Return the digests of the texts that no set may have, because models are scored on them (see `writers`)."""
    return frozenset(line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
