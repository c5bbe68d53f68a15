"""Readers of word vectors, word frequencies and lists of misspellings."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from gramvec.errors import InputError
from gramvec_training.readers.lines import number_lines, read_lines
from gramvec_training.shared import Floats


def find_vectors(path: Path, data: Path = Path()) -> Path:
    """Return the path of a config's word vectors: below `data`, or the folder of an installed package.

    Gives data / path where there is neither, which `read_vectors` refuses.
    """
    below_data = data / path
    if not below_data.exists() and path.name.isidentifier() and path.parent == Path():
        package = find_spec(path.name) if path.name not in sys.stdlib_module_names else None
        if package is not None and package.submodule_search_locations:
            return Path(package.submodule_search_locations[0])
    return below_data


def read_vectors(path: Path) -> tuple[list[str], Floats]:
    """Read words and their vectors float32[n, d] in file order; a repeated word keeps its first row.

    Text has one word and its numbers a line. A first line of two whole numbers is taken as counts (word2vec's header).
    A word may hold spaces: the last d columns are the numbers. A file ending in .npy is an array [n, d] of floats,
    whose words are the lines of the file of the same name ending in .txt. A folder, such as a package's, holds one .npy
    file and, in a .parquet file of one column (which needs pyarrow) or a .txt file, its words.

    Raises:
        InputError: At the file and the line: another format, or a number that is not finite.
    """
    if path.is_dir():
        return _from_folder(path)
    if path.suffix == ".npy":
        return _from_array(path, path.with_suffix(".txt"))
    return _from_text(path)


def _from_folder(folder: Path) -> tuple[list[str], Floats]:
    arrays = sorted(folder.rglob("*.npy"))
    lists = sorted(folder.rglob("*.parquet")) or sorted(folder.rglob("*.txt"))
    if len(arrays) != 1 or len(lists) != 1:
        raise InputError(f"{folder}: does not hold one .npy file and one list of its words; name the .npy file")
    return _from_array(arrays[0], lists[0])


def _from_array(path: Path, listed: Path) -> tuple[list[str], Floats]:
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path, or the folder given as --data") from None
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: not an array of NumPy: {error}") from error
    if array.ndim != 2 or array.dtype.kind != "f" or not array.size:
        raise InputError(f"{path}: {array.dtype}{list(array.shape)}; word vectors are floats, a row a word")
    vectors = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise InputError(f"{path} row {row}: a number that is not finite; remove the word")
    words = _list_names(listed)
    if len(words) != len(vectors):
        raise InputError(f"{path}: {len(vectors)} rows and {listed.name} {len(words)} words; give one word a row")
    first = {word: row for row, word in reversed(list(enumerate(words)))}
    if len(first) == len(words):
        return words, vectors
    rows = sorted(first.values())
    return [words[row] for row in rows], vectors[rows]


def _list_names(path: Path) -> list[str]:
    if path.suffix != ".parquet":
        return [word for _, word in number_lines(path)]
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InputError(f"{path.name}: needs pyarrow: pip install 'gramvec[papers]', or pip install pyarrow") from None
    try:
        table = parquet.read_table(path)
        (column,) = table.columns
        words: list[str] = column.cast("string").to_pylist()
    except (OSError, ValueError, ArrowException) as error:
        raise InputError(f"{path}: not one column of words: {error}") from error
    if None in words:
        raise InputError(f"{path}: a word that is missing, at row {words.index(None)}")  # type: ignore[arg-type]
    return words


def _from_text(path: Path) -> tuple[list[str], Floats]:
    words: list[str] = []
    seen: set[str] = set()
    rows: list[Floats] = []
    dimension: int | None = None
    for number, line in number_lines(path):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(part.isdigit() for part in fields):
            dimension = int(fields[1])
            continue
        if dimension is None:
            dimension = len(fields) - 1
        if dimension < 1 or len(fields) <= dimension:
            raise InputError(
                f"{path} line {number}: {len(fields) - 1} numbers where {dimension} are due; "
                "each line is a word and its numbers, separated by single spaces"
            )
        try:
            row = np.array(fields[-dimension:], dtype=np.float32)
        except ValueError as error:
            raise InputError(f"{path} line {number}: not a word and {dimension} numbers: {error}") from error
        if not np.isfinite(row).all():
            raise InputError(f"{path} line {number}: a number that is not finite; remove the line")
        word = " ".join(fields[:-dimension])
        if word not in seen:
            seen.add(word)
            words.append(word)
            rows.append(row)
    if not rows:
        raise InputError(f"{path}: no word vector")
    return words, np.stack(rows)


def read_frequencies(path: Path) -> dict[str, float]:
    """Read p(w), in (0, 1), of lower-cased words; words that are equal in lower case are added.

    Two formats: `word count` a line, where p is the count over the sum of all counts (SIF's own file), and
    `word<TAB>centibels`, where no value is above zero and p = 10^(centibels / 100) (wordfreq's file).

    Raises:
        InputError: Naming the line that is neither.
    """
    values: list[tuple[str, float]] = []
    for number, line in number_lines(path):
        if not line.strip():
            continue
        try:
            word, value = line.rsplit(None, 1)
            values.append((word.strip().lower(), float(value)))
        except ValueError:
            raise InputError(
                f'{path} line {number}: not "word count"; each line is a word, a space or tab, and a number'
            ) from None
        if not math.isfinite(values[-1][1]):
            raise InputError(f"{path} line {number}: a count that is not finite; remove the line")
    if not values:
        raise InputError(f"{path}: no word; each line is a word, a space or tab, and a number")

    if all(value <= 0 for _, value in values):
        return _add_lengths([(word, 10.0 ** (value / 100)) for word, value in values])
    if any(value < 0 for _, value in values):
        raise InputError(f"{path}: mixes counts with negative numbers; give only counts or only centibels")
    total = sum(value for _, value in values)
    return _add_lengths([(word, value / total) for word, value in values if value > 0])


def _add_lengths(values: list[tuple[str, float]]) -> dict[str, float]:
    frequencies: dict[str, float] = {}
    for word, value in values:
        frequencies[word] = frequencies.get(word, 0.0) + value
    return frequencies


def read_misspellings(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Read lower-case word -> misspellings from `word<TAB>misspelling` rows; other rows are left out.

    Raises:
        InputError: A file that is missing or has no such row.
    """
    misspellings: dict[str, list[str]] = {}
    for path in paths:
        rows = 0
        for _, line, _ in read_lines(path):
            word, _, rest = line.partition("\t")
            misspelling = rest.split("\t")[0].strip()
            if word.isalpha() and misspelling and misspelling.lower() != word.lower():
                misspellings.setdefault(word.lower(), []).append(misspelling)
                rows += 1
        if not rows:
            raise InputError(f"{path}: no misspelling: write a word, a tab and a misspelling of it on each line")
    return misspellings
