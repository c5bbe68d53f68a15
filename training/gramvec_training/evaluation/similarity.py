"""Similarity sets: correlation with human scores, coverage, misspelled copies, candidate words for neighbors.

A set is a file of `score<TAB>text<TAB>text` rows, a task a folder of sets.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.features import numpy_reference as plain
from gramvec.features.featurizer import Featurizer
from gramvec.features.tokens import TokenVocabulary
from gramvec.text.inputs import code_points
from gramvec_training.readers.lines import number_lines, read_lines
from gramvec_training.readers.vectors import read_frequencies
from gramvec_training.shared import Similarity

_LAYOUT = "each line is a score, a tab, a text, a tab and a text"


@dataclass(frozen=True)
class SimilaritySet:
    """Human scores of text pairs; `task` is the folder's name and `name` the file's."""

    task: str
    name: str
    scores: npt.NDArray[np.float64]
    left: list[str]
    right: list[str]


def find_sets(folders: Sequence[Path]) -> tuple[list[SimilaritySet], list[str]]:
    """Find the sets of task folders or files, by name; return them with notes.

    Files that were found by walking and whose first line is not of the layout are left out, with a note for each
    folder of them.

    Raises:
        InputError: A path is missing, a later line is bad, or no set is found.
    """
    sets: list[SimilaritySet] = []
    notes: list[str] = []
    for folder in folders:
        if not folder.exists():
            raise InputError(f"{folder}: no such folder; name a folder of score<TAB>text<TAB>text files")
        if folder.is_file():
            sets.append(read_set(folder))
            continue
        left_out: dict[Path, list[str]] = {}
        for path in sorted({*folder.glob("*.tsv"), *folder.glob("*/*.tsv")}):
            if _has_layout(path):
                sets.append(read_set(path))
            else:
                left_out.setdefault(path.parent, []).append(path.name)
        notes += [_describe_left_out(parent, names) for parent, names in left_out.items()]
    if not sets:
        names = " or ".join(str(folder) for folder in folders)
        raise InputError(f"{names}: no similarity set; {_LAYOUT}, in files that end in .tsv")
    return sets, notes


def read_set(path: Path) -> SimilaritySet:
    """Read one set.

    Raises:
        InputError: A line is not `score<TAB>text<TAB>text`; the message names the first.
    """
    scores: list[float] = []
    left: list[str] = []
    right: list[str] = []
    for number, line in number_lines(path):
        row = _parse_row(line)
        if row is None:
            raise InputError(f"{path} line {number}: not readable: {_LAYOUT}")
        scores.append(row[0])
        left.append(row[1])
        right.append(row[2])
    if len(set(scores)) < 2:
        raise InputError(f"{path}: fewer than two different scores, so nothing can correlate with it")
    return SimilaritySet(path.parent.resolve().name, path.stem, np.array(scores), left, right)


def correlate(predicted: npt.NDArray[np.floating[Any]], scores: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return Pearson's r and Spearman's rho in [-1, 1]; NaN for both where `predicted` is constant or has NaN."""
    values = np.asarray(predicted, dtype=np.float64)
    if not np.isfinite(values).all() or np.ptp(values) == 0:
        return math.nan, math.nan
    from scipy import stats  # half a second, of which a run without similarity sets has no use

    return float(stats.pearsonr(values, scores).statistic), float(stats.spearmanr(values, scores).statistic)


def score_sets(sets: Sequence[SimilaritySet], similarity: Similarity) -> dict[str, Any]:
    """Return the scores of one model, Pearson and Spearman times 100, as nested JSON values.

    `tasks`: task -> `sets` (set -> pairs, pearson, spearman), `mean` over the sets (the papers' way; an undefined
    correlation counts as 0) and `pooled` over all pairs of the task (MTEB's way). `notes`: sentences on what is
    undefined, whose value is None.
    """
    tasks: dict[str, Any] = {}
    notes: list[str] = []
    for task in dict.fromkeys(similarity_set.task for similarity_set in sets):
        members = [similarity_set for similarity_set in sets if similarity_set.task == task]
        predicted = [similarity(member.left, member.right) for member in members]
        results: dict[str, Any] = {}
        for member, values in zip(members, predicted, strict=True):
            result = _score_pairs(values, member.scores)
            results[member.name] = result
            if result["pearson"] is None:
                notes.append(
                    f"{task}/{member.name}: all predicted similarities are equal or one is not a number, so its "
                    "correlation is undefined and counts as 0 in the mean."
                )
        tasks[task] = {
            "sets": results,
            "mean": {
                measure: float(np.mean([result[measure] or 0.0 for result in results.values()]))
                for measure in ("pearson", "spearman")
            },
            "pooled": _score_pairs(np.concatenate(predicted), np.concatenate([member.scores for member in members])),
        }
    return {"tasks": tasks, "notes": notes}


def round_scores(scores: dict[str, Any]) -> dict[str, Any]:
    """Return task -> `mean` and `sets` of `score_sets`, Pearson and Spearman to three digits."""

    def round_result(result: dict[str, Any]) -> dict[str, float | None]:
        return {
            measure: None if result[measure] is None else round(result[measure], 3)
            for measure in ("pearson", "spearman")
        }

    return {
        task: {
            "mean": round_result(result_of_task["mean"]),
            "sets": {name: round_result(result) for name, result in result_of_task["sets"].items()},
        }
        for task, result_of_task in scores["tasks"].items()
    }


def _describe_left_out(folder: Path, names: Sequence[str]) -> str:
    shown = f"{folder / names[0]} is" if len(names) == 1 else f"{folder}: {len(names)} files are"
    return f"{shown} left out: not rows of score<TAB>text<TAB>text."


def _score_pairs(predicted: npt.NDArray[np.floating[Any]], scores: npt.NDArray[np.float64]) -> dict[str, Any]:
    pearson, spearman = correlate(predicted, scores)
    return {
        "pairs": len(scores),
        "pearson": None if math.isnan(pearson) else 100 * pearson,
        "spearman": None if math.isnan(spearman) else 100 * spearman,
    }


def _parse_row(line: str) -> tuple[float, str, str] | None:
    try:
        score, left, right = line.split("\t")
        value = float(score)
    except ValueError:
        return None
    return (value, left, right) if math.isfinite(value) else None


def _has_layout(path: Path) -> bool:
    first = next(read_lines(path), None)
    return first is not None and _parse_row(first[1]) is not None


_CHUNK = 2_000  # texts at a time, so that the n-gram keys of a large set fit into memory


def measure_coverage(sets: Sequence[SimilaritySet], featurizer: Featurizer) -> dict[str, dict[str, Any]]:
    """Return what is known of each task's texts, counting every occurrence.

    Task -> `texts`; `texts_unknown`, those without any known feature; `ngrams_known` and `words_known`, shares in
    [0, 1] of all n-grams of the model's orders and of all words and symbols, None for a model that has none.
    A word that falls on the row of unknown words is not known.
    """
    return {
        task: _measure_texts(
            [
                text
                for similarity_set in sets
                if similarity_set.task == task
                for text in [*similarity_set.left, *similarity_set.right]
            ],
            featurizer,
        )
        for task in dict.fromkeys(similarity_set.task for similarity_set in sets)
    }


def _measure_texts(texts: list[str], featurizer: Featurizer) -> dict[str, Any]:
    counts = [_count_features(chunk, featurizer) for chunk in _split_texts(texts)]
    ngrams, words = sum(count.ngrams for count in counts), sum(count.words for count in counts)
    return {
        "texts": len(texts),
        "texts_unknown": sum(int(np.count_nonzero(~count.known)) for count in counts),
        "ngrams_known": sum(count.known_ngrams for count in counts) / ngrams if ngrams else None,
        "words_known": sum(count.known_words for count in counts) / words if words else None,
    }


class _Counts(NamedTuple):
    known: npt.NDArray[np.bool_]
    ngrams: int = 0
    known_ngrams: int = 0
    words: int = 0
    known_words: int = 0


def _count_features(texts: Sequence[str], featurizer: Featurizer) -> _Counts:
    spec, vocabulary = featurizer.spec, featurizer.vocabulary
    if isinstance(vocabulary, TokenVocabulary):
        batch = featurizer(texts)
        known = batch.ids != (-1 if vocabulary.unknown is None else vocabulary.unknown)
        owners = np.repeat(np.arange(len(texts)), batch.counts)[known]
        tokens = len(batch.ids) + batch.unknown
        return _Counts(np.isin(np.arange(len(texts)), owners), words=tokens, known_words=int(np.count_nonzero(known)))
    chars = plain.characters(code_points(texts, spec.read), vocabulary.table)
    counts = _Counts(np.zeros(len(texts), np.bool_))
    if spec.orders:
        keys, valid = plain.ngram_keys(chars, spec.orders, vocabulary.bits)
        known_ngrams = valid & (plain.ngram_rows(keys, vocabulary) >= 0)
        counts.known[chars.text[known_ngrams.any(axis=1)]] = True
        # Position k of a text ends an n-gram of every order up to k + 1, also where a character of it is unknown.
        position = np.arange(len(chars.text)) - chars.first
        ngrams = sum(int(np.count_nonzero(position >= order - 1)) for order in spec.orders)
        counts = counts._replace(ngrams=ngrams, known_ngrams=int(np.count_nonzero(known_ngrams)))
    if spec.words:
        spans = plain.word_spans(chars)
        known_words = plain.word_rows(chars, spans, vocabulary) >= 0
        counts.known[spans.text[known_words]] = True
        counts = counts._replace(words=len(known_words), known_words=int(np.count_nonzero(known_words)))
    return counts


def _split_texts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _CHUNK):
        yield texts[start : start + _CHUNK]


# The neighbors of each key on a QWERTY keyboard, left to right, above and below.
NEIGHBORS = {
    "q": "wa", "w": "qeas", "e": "wrsd", "r": "etdf", "t": "ryfg", "y": "tugh", "u": "yihj", "i": "uojk",
    "o": "ipkl", "p": "ol", "a": "qwsz", "s": "adwezx", "d": "sferxc", "f": "dgrtcv", "g": "fhtyvb",
    "h": "gjyubn", "j": "hkuinm", "k": "jliom", "l": "kop", "z": "asx", "x": "zcsd", "c": "xvdf", "v": "cbfg",
    "b": "vngh", "n": "bmhj", "m": "njk",
}  # fmt: skip
KINDS = ("keyboard", "transposition", "deletion", "insertion", "real")
SHORTEST = 3


def keep_sentence_sets(sets: Sequence[SimilaritySet]) -> list[SimilaritySet]:
    """Return the sets without those of single words, which misspellings leave too little of."""
    return [
        similarity_set
        for similarity_set in sets
        if any(" " in text.strip() for text in [*similarity_set.left, *similarity_set.right])
    ]


def misspell_sets(
    sets: Sequence[SimilaritySet], share: float, known: Mapping[str, Sequence[str]], *, seed: int = 1
) -> list[SimilaritySet]:
    """Return the sets with about `share` (0 to 1) of the words of three letters and more misspelled, on both sides.

    One kind of mistake a word, each kind as likely; "real" takes a misspelling of `known` and, where there is none,
    another kind. The same arguments give the same sets.
    """
    noisy = []
    for similarity_set in sets:
        rng = np.random.default_rng(
            [seed, round(share * 1000), zlib.crc32(f"{similarity_set.task}/{similarity_set.name}".encode())]
        )
        left = [misspell_text(text, share, known, rng) for text in similarity_set.left]
        right = [misspell_text(text, share, known, rng) for text in similarity_set.right]
        noisy.append(replace(similarity_set, left=left, right=right))
    return noisy


def misspell_text(text: str, share: float, known: Mapping[str, Sequence[str]], rng: np.random.Generator) -> str:
    """Misspell each word of three letters and more with probability `share`."""
    words = text.split(" ")
    for index, word in enumerate(words):
        if len(word) >= SHORTEST and word.isascii() and word.isalpha() and rng.random() < share:
            words[index] = _misspell_word(word, known.get(word.lower(), ()), rng)
    return " ".join(words)


def _misspell_word(word: str, real: Sequence[str], rng: np.random.Generator) -> str:
    kind = KINDS[int(rng.integers(len(KINDS) if real else len(KINDS) - 1))]
    at = int(rng.integers(len(word)))
    near = NEIGHBORS[word[at].lower()]
    neighbor = near[int(rng.integers(len(near)))]
    if kind == "real":
        return real[int(rng.integers(len(real)))]
    if kind == "keyboard":
        return word[:at] + neighbor + word[at + 1 :]
    if kind == "deletion":
        return word[:at] + word[at + 1 :]
    if kind == "insertion":
        return word[:at] + neighbor + word[at:]
    at = min(at, len(word) - 2)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


# Table 9: eleven words, the first eight not in the paper's training data, and a common misspelling.
WORDS = (
    "vehicals", "serious-looking", "near-impossible", "growths", "litered", "journeying", "babyyyyyy", "adirty",
    "definately", "refunding", "professors", "huge",
)  # fmt: skip
# Table 8: negations that one word can say.
PHRASES = ("not capable", "not able", "not possible", "not sufficient", "not easy")
CANDIDATES = 50_000


def list_candidate_words(embedders: Iterable[Embedder], sets: Sequence[SimilaritySet]) -> list[str]:
    """Return words to search: the most frequent of each vocabulary, at most 50,000, and those of the sets."""
    words: dict[str, None] = {}
    for embedder in embedders:
        own = [entry.text for entry in embedder.bundle.vocabulary.entries() if entry.kind == "word"]
        words.update(dict.fromkeys(_keep_words(own)[:CANDIDATES]))
    for similarity_set in sets:
        for text in [*similarity_set.left, *similarity_set.right]:
            words.update(dict.fromkeys(_keep_words(text.lower().split())))
    if not words:
        raise InputError("neither the model nor the sets have words to look for neighbors among; give --words FILE")
    return list(words)


def read_words(path: Path) -> list[str]:
    """Return the 50,000 most frequent words of a file of frequencies."""
    frequencies = read_frequencies(path)
    words = _keep_words(sorted(frequencies, key=lambda word: (-frequencies[word], word)))[:CANDIDATES]
    if not words:
        raise InputError(f"{path}: no word of letters; each line is a word, a space or tab, and a number")
    return words


def _keep_words(words: Iterable[str]) -> list[str]:
    """Return the words of at least two letters, hyphens between them allowed."""
    return [word for word in words if len(word) > 1 and word.replace("-", "").isalpha() and word[0] != "-" != word[-1]]
