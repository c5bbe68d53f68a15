"""What every experiment takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Row = Mapping[str, str | float | None]


@dataclass(frozen=True)
class Inputs:
    """What an experiment is made of.

    vectors: word vectors as text, .npy or an installed package; a run folder of a word model; or a bundle of one.
    frequencies: files of word frequencies, of which the first is used where one is wanted. sets: folders of
    similarity sets, each a task. norms: vectors of a trained model, whose lengths weigh words. data: the folder of
    training files. in_domain: a set of phrases such as are trained on. word_sets: sets of single words. models: the
    folder of the shipped bundles. labelled: the folder of labelled texts, SICK, SST, SNLI and IMDB each in its own.
    tagged: the folder of a treebank.
    work: where learned models are kept, so that a second call finds them. seeds: of what is learned.
    """

    vectors: Path
    frequencies: tuple[Path, ...]
    sets: tuple[Path, ...]
    norms: Path | None = None
    data: Path | None = None
    in_domain: Path | None = None
    word_sets: tuple[Path, ...] = ()
    models: Path = Path("models")
    work: Path = Path("runs/papers/models")
    seeds: tuple[int, ...] = (1, 2)
    labelled: Path | None = None
    tagged: Path | None = None


@dataclass(frozen=True)
class Finding:
    """What the paper found, whether it holds here, and what was seen; a sure one holds at any size."""

    claim: str
    holds: bool
    seen: str
    sure: bool = False


@dataclass(frozen=True)
class Outcome:
    """rows: of a table, each with the same columns; where a paper's value is known, it stands in a column beside."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        return {"rows": [dict(row) for row in self.rows], "findings": [asdict(one) for one in self.findings]}


@dataclass(frozen=True)
class Drawing:
    """Of an outcome's rows a curve for each of the columns y over x; a row whose x is no number is a level."""

    x: str
    y: tuple[str, ...]
    logarithmic: bool = False


@dataclass(frozen=True)
class Experiment:
    """name: as the command takes it. table: the paper's. stands_in: what is used here for the paper's data."""

    name: str
    table: str
    title: str
    stands_in: str
    run: Callable[[Inputs], Outcome]
    learns: bool = False  # so it takes minutes, and has seeds
    labels: bool = False  # of the folder `labelled`
    tags: bool = False  # of the folder `tagged`, and of nothing else
    raw: bool = False  # of the raw texts below the folder `data`, and not of its other files
    drawing: Drawing | None = None
    note: str = ""  # what was tried, in sentences
