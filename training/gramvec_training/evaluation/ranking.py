"""Ranking: retrieval by nDCG@10, and correction of misspelled words.

A set is a folder of `corpus.tsv` (id, and texts that are joined: a title, an abstract), `queries.tsv` (id, text) and
`qrels.tsv` (query, document, grade: 0 for no answer, 1 and more for better and better ones), all without a header.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gramvec.errors import InputError
from gramvec_training.evaluation.backend import ModelForTexts
from gramvec_training.readers.lines import number_lines, read_rows

DEPTH = 10


@dataclass(frozen=True)
class RetrievalSet:
    """Documents, queries, and for each query the grades, 1 and more, of its relevant documents by position."""

    name: str
    documents: list[str]
    queries: list[str]
    grades: list[dict[int, int]]


def find_retrieval_sets(folder: Path) -> list[RetrievalSet]:
    """Find the sets below a folder, by name, or the one that it is.

    Raises:
        InputError: There is none.
    """
    if (folder / "corpus.tsv").is_file():
        return [read_retrieval_set(folder)]
    folders = sorted(path.parent for path in folder.glob("*/corpus.tsv"))
    if not folders:
        raise InputError(f"{folder}: no retrieval set; a set has corpus.tsv, queries.tsv and qrels.tsv")
    return [read_retrieval_set(path) for path in folders]


def read_retrieval_set(folder: Path) -> RetrievalSet:
    """Read one set; queries without a relevant document are left out.

    Raises:
        InputError: At file and line: a file that is missing, a line with too few columns, an id that occurs
            twice or is not known, and a grade that is not a whole number; and for a set without a query that has a
            document.
    """
    documents = _read_texts(folder / "corpus.tsv")
    queries = _read_texts(folder / "queries.tsv")
    places = {name: place for place, name in enumerate(documents)}
    grades: dict[str, dict[int, int]] = {name: {} for name in queries}
    path = folder / "qrels.tsv"
    for line, (query, document, grade, *_) in read_rows(path, columns=3):
        if query not in grades or document not in places or not (grade.isascii() and grade.isdecimal()):
            raise InputError(f"{path} line {line}: not the id of a query, the id of a document and a grade, 0 or more")
        if int(grade):
            grades[query][places[document]] = int(grade)
    answered = [name for name in queries if grades[name]]
    if not answered:
        raise InputError(f"{path}: names no document for any query of queries.tsv")
    return RetrievalSet(
        folder.resolve().name,
        list(documents.values()),
        [queries[name] for name in answered],
        [grades[name] for name in answered],
    )


def score_retrieval(retrieval_set: RetrievalSet, model: ModelForTexts, *, depth: int = DEPTH) -> float:
    """Return nDCG at `depth`, 0 to 1, mean over the queries; the model is made for the documents."""
    places = model(retrieval_set.documents).nearest(retrieval_set.queries, retrieval_set.documents, depth)
    return float(
        np.mean([ndcg(row, grades, depth) for row, grades in zip(places.tolist(), retrieval_set.grades, strict=True)])
    )


@dataclass(frozen=True)
class TranslationSet:
    """Texts in one language, and of each its translation in another."""

    name: str
    texts: list[str]
    translations: list[str]


def find_translation_sets(path: Path) -> list[TranslationSet]:
    """Read the sets below a folder, files of `text<TAB>translation`, by name, or the one that it is.

    Raises:
        InputError: There is none, or a line has one column.
    """
    files = [path] if path.is_file() else sorted(path.glob("*.tsv"))
    if not files:
        raise InputError(f"{path}: no translations; give a file of text<TAB>translation, NAME.tsv, or a folder of some")
    sets = []
    for file in files:
        rows = [(text, translation) for _, (text, translation, *_) in read_rows(file, columns=2)]
        sets.append(TranslationSet(file.stem, [text for text, _ in rows], [translation for _, translation in rows]))
    return sets


def score_translations(translation_set: TranslationSet, model: ModelForTexts) -> float:
    """Return the share of texts, 0 to 1, whose translation is the nearest of the set's; equal ones are one."""
    translations = list(dict.fromkeys(translation_set.translations))
    nearest = model(translations).nearest(translation_set.texts, translations, 1)[:, 0]
    places = {text: place for place, text in enumerate(translations)}
    return float(np.mean(nearest == [places[text] for text in translation_set.translations]))


def ndcg(ranking: Sequence[int], grades: Mapping[int, int], depth: int) -> float:
    """Return normalized discounted cumulative gain (Järvelin and Kekäläinen, 2002) as in trec_eval, 0 to 1.

    The sum of grade / log2(rank + 1) over the first `depth` of the ranking, by that of the best ranking.
    """
    gained = [grades.get(document, 0) for document in ranking[:depth]]
    best = sorted(grades.values(), reverse=True)[:depth]
    return _discount(gained) / _discount(best)


def _discount(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _read_texts(path: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for line, (name, *rest) in read_rows(path, columns=2):
        if name in texts:
            raise InputError(f"{path} line {line}: the id {name!r} occurs twice")
        texts[name] = " ".join(part for part in rest if part)
    if not texts:
        raise InputError(f"{path}: empty; each line is an id, a tab and a text")
    return texts


NEAREST = (1, 3, 10)


@dataclass(frozen=True)
class SpellingSet:
    """Misspelled words and, by its position in `words`, the correct word of each.

    `seen` bool[n]: whether a model may have learned from this very misspelling.
    """

    name: str
    words: Sequence[str]
    misspelt: list[str]
    meant: list[int]
    seen: list[bool]


@dataclass(frozen=True)
class SpellingScores:
    """k -> share, 0 to 1, of misspelled words whose word is among the k nearest: of all, and of those not seen.

    The second is empty where nothing was seen, or all was.
    """

    found: Mapping[int, float]
    found_unseen: Mapping[int, float]


def read_words(path: Path, count: int) -> list[str]:
    """Read the first `count` distinct words in lower case; the rest of a line after a space or tab is ignored.

    Raises:
        InputError: There are fewer.
    """
    words: dict[str, None] = {}
    for _, line in number_lines(path):
        if len(words) == count:
            break
        words.update((word.lower(), None) for word in line.split(maxsplit=1)[:1])
    if len(words) < count:
        raise InputError(f"{path}: {len(words):,} different words, not {count:,}; write a word a line")
    return list(words)


def read_spelling_set(
    path: Path,
    words: Sequence[str],
    *,
    seen: Mapping[str, Sequence[str]] | None = None,
    max_words: int | None = None,
    seed: int = 1,
) -> SpellingSet:
    """Read the lines whose word is in `words`, ignoring case; at most `max_words`, drawn by `seed`.

    seen: lower-case word -> misspellings that a model may have learned from.

    Raises:
        InputError: No line is left, and for a line without a tab.
    """
    places = {word: place for place, word in enumerate(words)}
    known = {(word, wrong.lower()) for word, listed in (seen or {}).items() for wrong in listed}
    seen_before: dict[tuple[str, int], bool] = {}
    for _, (column, wrong, *_) in read_rows(path, columns=2):
        word, wrong = column.strip().lower(), wrong.strip()
        if word in places and wrong and wrong.lower() != word:
            seen_before[wrong, places[word]] = (word, wrong.lower()) in known
    if not seen_before:
        raise InputError(f"{path}: no misspelling of one of the {len(words):,} words; write word<TAB>misspelling")
    chosen = list(seen_before)
    if max_words is not None and max_words < len(seen_before):
        drawn = np.sort(np.random.default_rng(seed).permutation(len(seen_before))[:max_words])
        chosen = [chosen[i] for i in drawn.tolist()]
    name = path.name.removesuffix(".gz").removesuffix(".tsv")
    misspelt, meant = [text for text, _ in chosen], [place for _, place in chosen]
    return SpellingSet(name, words, misspelt, meant, [seen_before[pair] for pair in chosen])


def score_spelling(
    spelling_set: SpellingSet, model: ModelForTexts, *, nearest: Sequence[int] = NEAREST
) -> SpellingScores:
    """Score a model made for the words."""
    asked = list(dict.fromkeys(spelling_set.misspelt))
    places = model(spelling_set.words).nearest(asked, spelling_set.words, max(nearest)).tolist()
    of_text = dict(zip(asked, places, strict=True))
    unseen = ~np.array(spelling_set.seen, np.bool_)
    found, found_unseen = {}, {}
    for k in nearest:
        hits = np.array(
            [word in of_text[text][:k] for text, word in zip(spelling_set.misspelt, spelling_set.meant, strict=True)]
        )
        found[k] = float(hits.mean())
        if unseen.any() and not unseen.all():
            found_unseen[k] = float(hits[unseen].mean())
    return SpellingScores(found, found_unseen)
