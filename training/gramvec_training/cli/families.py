"""The options of `evaluate` for other families than similarity, and what they name, opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from gramvec.errors import InputError
from gramvec_training.cli.support import PATH

if TYPE_CHECKING:
    from gramvec_training.evaluation import ScoredModel, SimilaritySet, Typos
    from gramvec_training.families import Families, Model

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS = (
    click.option("--matching", type=PATH, multiple=True,
                 help="Matching set, or folder of some: left.csv, right.csv, and train.csv, valid.csv, test.csv with "
                 "left,right,match; repeatable."),
    click.option("--columns", multiple=True, metavar="SET=COLUMN,...",
                 help="Compare these columns of the matching set of this name; repeatable.  "
                 "[default: the benchmark's, or all]"),
    click.option("--retrieval", type=PATH, multiple=True,
                 help="Retrieval set, or folder of some: corpus.tsv, queries.tsv, qrels.tsv; repeatable."),
    click.option("--classification", type=PATH, multiple=True,
                 help="File of label<TAB>text, a fifth of it scored, or folder of a train.tsv and a test.tsv; "
                 "repeatable."),
    click.option("--spelling", type=PATH, multiple=True, help="File of word<TAB>misspelling; repeatable."),
    click.option("--words", type=PATH,
                 help="With --spelling: the words to find the right one among, one a line, the most frequent first."),
    click.option("--frequent", type=click.IntRange(min=2), default=50_000, show_default=True,
                 help="How many of --words."),
    click.option("--sample", type=click.IntRange(min=1),
                 help="Score so many lines of each file of --spelling, drawn by --seed.  [default: all]"),
    click.option("--seen", type=PATH, multiple=True,
                 help="Misspellings that a model was trained on, word<TAB>misspelling: not used for --typos, and "
                 "--spelling is scored without them too; repeatable."),
    click.option("--peer", "peers", multiple=True, metavar="NAME",
                 help="Score a rival as well: tfidf, tfidf-3-5, tfidf-words, rapidfuzz, match (`gramvec match`), all "
                 "of these that are installed (all), model2vec=FOLDER, transformer=FOLDER, or lexical=MODEL, "
                 "both=MODEL: a bundle whose n-grams are weighed by the texts at hand, or indexed=MODEL, hybrid=MODEL: "
                 "what `gramvec index --space both` and `gramvec search --hybrid 0.5` compare; repeatable."),
)  # fmt: skip


@dataclass(frozen=True)
class Named:
    """The values of these options, under their names."""

    matching: tuple[Path, ...]
    columns: tuple[str, ...]
    retrieval: tuple[Path, ...]
    classification: tuple[Path, ...]
    spelling: tuple[Path, ...]
    words: Path | None
    frequent: int
    sample: int | None
    seen: tuple[Path, ...]
    peers: tuple[str, ...]

    def check(self, *, with_sets: bool) -> None:
        """Raise UsageError where one of them needs another, or there is nothing to score on."""
        if not (with_sets or self.matching or self.retrieval or self.classification or self.spelling):
            families = "--matching, --retrieval, --classification or --spelling"
            raise click.UsageError(f"Name what to score on: --sets, {families}.")
        if bool(self.spelling) != (self.words is not None):
            raise click.UsageError("--spelling and --words belong together.")
        if self.columns and not self.matching:
            raise click.UsageError("--columns belongs to --matching.")


def family_options(command: Callable[P, R]) -> Callable[P, R]:
    """The options of Named, by its names."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def open_families(named: Named, seed: int) -> Families:
    """The sets, read. Raises InputError for what cannot be used."""
    from gramvec_training import families
    from gramvec_training.readers import read_misspellings

    columns = dict(_columns(value) for value in named.columns)
    matching = [one for path in named.matching for one in families.find_matching_sets(path, columns)]
    absent = sorted(columns.keys() - {one.name for one in matching})
    if absent:
        raise InputError(f"There is no matching set {absent[0]!r} whose --columns could be compared.")
    words = families.read_words(named.words, named.frequent) if named.words is not None else []
    seen = read_misspellings(named.seen)
    return families.Families(
        matching=matching,
        retrieval=[one for path in named.retrieval for one in families.find_retrieval_sets(path)],
        classification=[families.read_classification_set(path, seed=seed) for path in named.classification],
        spelling=[
            families.read_spelling_set(path, words, seen=seen, most=named.sample, seed=seed) for path in named.spelling
        ],
    )


def open_peers(names: Sequence[str]) -> dict[str, Model]:
    """The peers by name; those of `all` whose library is missing are named on stderr. Raises InputError else."""
    from gramvec_training.families import installed_peers, open_peer

    peers: dict[str, Model] = {}
    for name in dict.fromkeys(names):
        found, notes = installed_peers() if name == "all" else ({name: open_peer(name)}, [])
        peers.update(found)
        for note in notes:
            click.echo(note, err=True)
    return peers


def score_all(
    reports: dict[str, dict[str, Any]],
    scored: Sequence[ScoredModel],
    peers: Mapping[str, Model],
    sets: Sequence[SimilaritySet],
    families: Families,
    typos: Typos,
) -> None:
    """Add to the models' reports (in the order of `scored`) their families, and a report for each peer."""
    from tqdm import tqdm

    from gramvec_training.families import of_scored, score_families, score_similarity

    models = {label: of_scored(one) for label, one in zip(reports, scored, strict=True)}
    rounds = (len(models) + len(peers)) * len(families) + len(peers) * bool(sets)
    with tqdm(total=rounds, unit=" sets", disable=None) as bar:

        def at(place: str) -> None:
            bar.set_description(place)
            bar.update()

        for label, model in peers.items():
            if sets:
                at(f"{label}: similarity")
            reports[label] = {"name": label, "device": "cpu", **score_similarity(sets, model, typos)}
        for label, model in {**models, **peers}.items():
            if families:
                reports[label]["families"] = score_families(
                    families,
                    model,
                    typos,
                    progress=lambda place, label=label: at(f"{label}: {place}"),  # type: ignore[misc]
                )


def _columns(value: str) -> tuple[str, tuple[str, ...]]:
    name, equals, columns = value.partition("=")
    if not name or not equals or not all(columns.split(",")):
        raise InputError(f"--columns {value!r} is not a set's name, = and its columns with commas between them.")
    return name, tuple(columns.split(","))
