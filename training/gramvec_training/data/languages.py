"""Words of many languages with their frequencies, and which of them name the same thing."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from gramvec.errors import InputError
from gramvec.text.characters import lower
from gramvec.text.folding import read_plain
from gramvec.text.scripts import is_unspaced

LONGEST_WORD = 32
WORDS_READ = 4  # times as many as are listed: what is behind them adds little to the share of a piece
RARE = 1e-8  # of a number that no list has: its share of a text's words


class ListedWord(NamedTuple):
    """Word of one language or of several: its largest share of a text's words, and the language of that share."""

    text: str
    share: float
    language: str


class Lists(NamedTuple):
    """Words that are listed, the most frequent of each language first: every rank of all languages before the next."""

    words: list[ListedWord]
    counts: dict[str, int]  # of each language, its words that no language before it has


def list_words(languages: Sequence[str], each: int, *, numbers: int = 0) -> Lists:
    """Return the `each` most frequent words of each language, and the `numbers` whole numbers from 0.

    The lists are those of the package wordfreq. Its words are cut where the featurizer cuts them ("l'eau" is "l" and
    "eau"), and the shares of equal pieces are added.

    Raises:
        InputError: The package is not installed, or has no list of a language.
    """
    shares = {language: _read_shares(language, WORDS_READ * each) for language in languages}
    largest: dict[str, ListedWord] = {}
    for language, shares_of_words in shares.items():
        for text, share in shares_of_words.items():
            if text not in largest or share > largest[text].share:
                largest[text] = ListedWord(text, share, language)
    ranked = {language: _rank(shares_of_words)[:each] for language, shares_of_words in shares.items()}
    chosen: dict[str, ListedWord] = {}
    counts = dict.fromkeys(languages, 0)
    for rank in range(max(map(len, ranked.values()), default=0)):
        for language, texts in ranked.items():
            if rank < len(texts) and texts[rank] not in chosen:
                chosen[texts[rank]] = largest[texts[rank]]
                counts[language] += 1
    for number in map(str, range(numbers)):
        chosen.setdefault(number, largest.get(number, ListedWord(number, RARE, languages[0])))
    return Lists(list(chosen.values()), counts)


def _read_shares(language: str, most: int) -> dict[str, float]:
    """Return the shares of the pieces of the `most` most frequent words of a language."""
    try:
        import wordfreq
    except ImportError as error:
        raise InputError("lists of words need wordfreq; install gramvec[distill]") from error
    try:
        # Words by hundredths of a power of ten: those of place i have the share 10^(-i / 100).
        buckets = wordfreq.get_frequency_list(language, "best")
    except LookupError as error:
        raise InputError(f"wordfreq has no list of the language {language!r}") from error
    listed = ((text, 10 ** (-place / 100)) for place, texts in enumerate(buckets) for text in texts)
    shares = share_pieces(islice(listed, most))
    wordfreq.get_frequency_list.cache_clear()  # of all languages it would hold two gigabytes
    return shares


def share_pieces(listed: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the shares of the words that the featurizer makes of these words with their shares."""
    shares: defaultdict[str, float] = defaultdict(float)
    for text, share in listed:
        for piece in cut_words(text):
            shares[piece] += share
    return dict(shares)


def _rank(shares: Mapping[str, float]) -> list[str]:
    return sorted((text for text in shares if len(text) <= LONGEST_WORD), key=lambda text: (-shares[text], text))


def cut_words(text: str) -> Iterator[str]:
    """Yield the runs of letters, marks, numbers and connectors of a text, as it is read and in lower case."""
    for is_word, run in groupby(map(lower, read_plain(text)), _is_word_character):
        if is_word:
            yield "".join(run)


def _is_word_character(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LMN" or category == "Pc"


def read_concepts(folder: Path, languages: Mapping[str, str]) -> tuple[list[list[list[str]]], int]:
    """Read which words name one thing: concepts, of each a list of words for each language that has some, and lines.

    Args:
        folder: of files of the Open Multilingual Wordnet, `concept<TAB>language:lemma<TAB>word` a line, NAME.tab, whose
            names end in the language's code.
        languages: the code in the files' names of each language; one without a file has no words.

    Raises:
        InputError: There is no such file at all.
    """
    concepts: defaultdict[str, list[list[str]]] = defaultdict(list)
    lines = files = 0
    for code in languages.values():
        words: defaultdict[str, list[str]] = defaultdict(list)
        for path in sorted(folder.glob(f"*-{code}.tab")):
            files += 1
            with path.open(encoding="utf-8") as file:
                for concept, word in _read_lemmas(file):
                    pieces = list(cut_words(word))
                    lines += 1
                    if len(pieces) == 1:
                        words[concept].append(pieces[0])
        for concept, texts in words.items():
            concepts[concept].append(sorted(set(texts)))
    if not files:
        raise InputError(
            f"{folder}: has no file of a wordnet, NAME-LANGUAGE.tab; docs/training-data.md says how they are fetched"
        )
    return [named for _, named in sorted(concepts.items()) if len(named) > 1], lines


def _read_lemmas(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        if len(fields) >= 3 and fields[1].endswith("lemma"):
            yield fields[0], fields[2]


def spell_ngrams(word: str, orders: Sequence[int]) -> Iterator[str]:
    """Yield the n-grams of a word: between two spaces, or, of a script that is written without spaces, of itself.

    Words of the latter stand within a run of letters, where nothing tells their edges.
    """
    padded = word if any(map(is_unspaced, word)) else f" {word} "
    for end in range(1, len(padded) + 1):
        for n in orders:
            if n <= end and (ngram := padded[end - n : end]) != " ":
                yield ngram


def choose_ngrams(words: Iterable[str], orders: Sequence[int], most: int, least: int, characters: int) -> list[str]:
    """Return at most `most` n-grams that `least` words have, those of most words first; single characters in any case.

    Of rarer characters than the `characters` most frequent there are none, so that keys of n-grams hold them all.
    """
    texts = list(words)
    seen = Counter(character for word in texts for character in word)
    known = {" ", *(character for character, _ in _most_frequent(seen, characters - 1))}
    counts: Counter[str] = Counter()
    for word in texts:
        counts.update({ngram for ngram in spell_ngrams(word, orders) if known.issuperset(ngram)})
    frequent = [
        (ngram, count) for ngram, count in _most_frequent(counts, len(counts)) if count >= least or len(ngram) == 1
    ]
    return [ngram for ngram, _ in frequent[:most]]


def _most_frequent(counts: Counter[str], most: int) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
