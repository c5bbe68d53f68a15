"""`gramvec dedupe` on lists of names and on registers, beside TF-IDF of scikit-learn, RapidFuzz and Splink.

Both sides of each join of the folder BENCH_JOINS are one list, in which all rows of one thing are duplicates: F1 at the
best threshold of each list; and precision, recall and F1 of all lists together, at the command's own threshold, or for
the others at the best one.

The tables of the folder `dedupe` of the data that have a column `cluster` are registers. gramvec compares all columns
as they are, by a pair model that has not learned from the register. TF-IDF at 0.8 and RapidFuzz's token_set_ratio at 90
compare the columns joined, as one would in twenty lines. For Splink the comparisons, the blocks and the passes of its
training are chosen by hand for each register, and its threshold is 0.5. F1 is of all pairs.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.left_out import leave_out
from benchmarks.match import BLOCK_ROWS, Join, best_f1, read_joins
from benchmarks.measure import Setting
from benchmarks.results import Group, Part, Row
from gramvec.jobs.duplicates.likely import likely_pairs
from gramvec.jobs.matching.match_tables import threshold_of
from gramvec.jobs.matching.nearest import Matches, concatenate_matches, select_pairs
from gramvec_training.data.pair_tables import LearningTable
from gramvec_training.runs.pair_model import read_all_tables

# Rows that TF-IDF compares a line with to find its duplicates.
NEIGHBORS = 20
# Least cosine of a pair of n-grams.
MIN_COSINE = 0.3
TFIDF_THRESHOLD, RATIO_THRESHOLD, SPLINK_THRESHOLD = 0.8, 0.9, 0.5
OURS, LEFT_OUT = "gramvec dedupe", "gramvec dedupe, learned from other tables"


@dataclass(frozen=True)
class SplinkColumns:
    """What Splink compares of a register: columns of words, columns of codes and dates, and blocks."""

    words: tuple[str, ...]
    codes: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]


_FEBRL = SplinkColumns(
    ("given_name", "surname", "address_1", "suburb"), ("date_of_birth", "postcode", "soc_sec_id"),
    (("given_name", "surname"), ("date_of_birth",), ("soc_sec_id",), ("surname", "postcode"), ("address_1",)),
)  # fmt: skip
SPLINK = {
    "early-childhood": SplinkColumns(
        ("name", "address"), ("zip", "phone"),
        (("phone",), ("address",), ("name",), ("substr(name, 1, 6)",), ("substr(address, 1, 8)",)),
    ),
    "fake-people": SplinkColumns(
        ("first_name", "surname", "city"), ("dob", "email"),
        (("first_name",), ("surname",), ("dob",), ("email",)),
    ),
    "febrl1": _FEBRL,
    "febrl3": _FEBRL,
}  # fmt: skip


def run(setting: Setting) -> Part:
    """Measure all ways on lists of names and on registers."""
    part = Part()
    peers = {"TF-IDF, scikit-learn": "sklearn", "RapidFuzz": "rapidfuzz", "Splink": "splink"}
    ways = [OURS, LEFT_OUT]
    for name, module in peers.items():
        try:
            import_module(module)
            ways.append(name)
        except ImportError:
            part.note(f"{name} is left out: not installed")
    joins = read_joins()
    if joins:
        _add_lists(part, joins, ways)
    registers = sorted((setting.data / "dedupe").glob("*.csv"))
    if registers:
        _add_registers(part, registers, setting.data, ways)
    if not part.groups:
        part.note("dedupe is left out: no joins and no registers; set DATA")
    return part


def _add_lists(part: Part, joins: list[Join], ways: Sequence[str]) -> None:
    rows: list[Row] = []
    for name, find in OF_LINES.items():
        if name not in ways:
            continue
        began, lists = time.process_time(), []
        for join in joins:
            alone = len(join.others) + np.arange(len(join.rows))
            thing = np.append(np.arange(len(join.others)), np.where(join.partner < 0, alone, join.partner))
            pairs = find([*join.others, *join.rows])
            lists.append((pairs.scores, thing[pairs.left] == thing[pairs.right], _number_of_pairs(thing)))
        seconds = round(time.process_time() - began, 2)
        scores, correct, number = zip(*lists, strict=True)
        together = np.concatenate(scores), np.concatenate(correct), sum(number)
        threshold = threshold_of(together[0], same=True) if name == OURS else best_f1(*together)[1]
        above = together[0] >= np.float32(threshold)
        found, right = int(above.sum()), int(together[1][above].sum())
        figures = {
            "f1_best": float(np.mean([best_f1(*one)[0] for one in lists])), "precision": right / found,
            "recall": right / together[2], "f1": 2 * right / (found + together[2]),
        }  # fmt: skip
        row: Row = {"name": name, "cpu_seconds": seconds, "threshold": round(threshold, 3)}
        rows.append(row | {key: round(100 * value, 1) for key, value in figures.items()})
    lines = sum(len(join.rows) + len(join.others) for join in joins)
    part.add("dedupe_joins", Group(f"dedupe: {len(joins)} lists of names, {lines:,} lines", "CPU seconds, %", rows))


def _add_registers(part: Part, paths: Sequence[Path], data: Path, ways: Sequence[str]) -> None:
    learned_from = [table for table in read_all_tables(data) if table.is_one_table]
    for path in paths:
        rows = _rows(path)
        if "cluster" not in rows[0]:
            continue
        columns = {name: [row[name] or "" for row in rows] for name in rows[0] if name not in ("id", "cluster")}
        thing = np.unique([row["cluster"] for row in rows], return_inverse=True)[1]
        found = _ways_of(path.stem, columns, learned_from)
        shown: list[Row] = []
        for name in ways:
            if name == "Splink" and path.stem not in SPLINK:
                continue
            began = time.process_time()
            pairs = found[name]()
            seconds = time.process_time() - began
            right, expected = int((thing[pairs.left] == thing[pairs.right]).sum()), _number_of_pairs(thing)
            figures = {
                "precision": right / max(len(pairs.left), 1), "recall": right / expected,
                "f1": 2 * right / (len(pairs.left) + expected),
            }  # fmt: skip
            row: Row = {"name": name} | {key: round(100 * value, 1) for key, value in figures.items()}
            # The time to learn a model is none of the command's.
            shown.append(row | ({} if name == LEFT_OUT else {"cpu_seconds": round(seconds, 2)}))
        title = f"dedupe: {path.stem}, {len(rows):,} rows, {len(columns)} columns"
        part.add(f"dedupe_{path.stem}", Group(title, "%, CPU seconds", shown))


def _ways_of(
    name: str, columns: Mapping[str, Sequence[str]], learned_from: Sequence[LearningTable]
) -> dict[str, Callable[[], Matches]]:
    """Return the ways to find the duplicates of a register, by name."""
    values, lines = [*columns.values()], [" ".join(filter(None, row)) for row in zip(*columns.values(), strict=True)]

    def by_left_out_model() -> Matches:
        with leave_out(name, learned_from):
            return _by_model(values)

    def above(find: Callable[[Sequence[str]], Matches], threshold: float) -> Matches:
        pairs = find(lines)
        return select_pairs(pairs, pairs.scores >= threshold)

    return {
        OURS: lambda: _by_model(values),
        LEFT_OUT: by_left_out_model,
        "TF-IDF, scikit-learn": lambda: above(_by_tfidf, TFIDF_THRESHOLD),
        "RapidFuzz": lambda: above(_by_rapidfuzz, RATIO_THRESHOLD),
        "Splink": lambda: _by_splink(columns, SPLINK[name]),
    }


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _number_of_pairs(thing: NDArray[np.int64]) -> int:
    counts = np.bincount(thing)
    return int((counts * (counts - 1) // 2).sum())


def _by_model(columns: Sequence[Sequence[str]], threshold: float | None = None) -> Matches:
    return Matches(*likely_pairs(columns, threshold).pairs)


def _by_splink(columns: Mapping[str, Sequence[str]], chosen: SplinkColumns) -> Matches:
    """Return the pairs of Splink's model, trained without labels: u from random pairs, m by EM for three blocks."""
    splink, compare = import_module("splink"), import_module("splink.comparison_library")
    engine = import_module("splink.backends.duckdb").DuckDBAPI()
    frame = import_module("pandas").DataFrame(columns).replace("", None)
    frame["unique_id"] = range(len(frame))
    comparisons = [compare.JaroWinklerAtThresholds(name, [0.92, 0.85]) for name in chosen.words]
    comparisons += [compare.LevenshteinAtThresholds(name, [1, 2]) for name in chosen.codes]
    blocks = [splink.block_on(*names) for names in chosen.blocks]
    settings = splink.SettingsCreator(
        link_type="dedupe_only", comparisons=comparisons, blocking_rules_to_generate_predictions=blocks
    )
    linker = splink.Linker(engine.register(frame), settings, log_level="ERROR")
    linker.training.estimate_probability_two_random_records_match(blocks[:2], recall=0.7)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    for block in blocks[:3]:
        linker.training.estimate_parameters_using_expectation_maximisation(block)
    found: Any = linker.inference.predict(threshold_match_probability=SPLINK_THRESHOLD).as_pandas_dataframe()
    return Matches(
        found["unique_id_l"].to_numpy(np.int64), found["unique_id_r"].to_numpy(np.int64),
        found["match_probability"].to_numpy(np.float32),
    )  # fmt: skip


def _by_tfidf(texts: Sequence[str]) -> Matches:
    text = import_module("sklearn.feature_extraction.text")
    made = text.TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), sublinear_tf=True, dtype=np.float32)
    vectors = made.fit_transform(texts)
    multiply = import_module("sparse_dot_topn").sp_matmul_topn
    near = multiply(vectors, vectors.T.tocsr(), top_n=NEIGHBORS, threshold=MIN_COSINE).tocoo()
    one, other = np.sort(np.stack([near.row, near.col]), axis=0).astype(np.int64)
    places, first = np.unique(one * len(texts) + other, return_index=True)
    left, right = np.divmod(places, len(texts))
    return Matches(left[left < right], right[left < right], near.data[first][left < right])


def _by_rapidfuzz(texts: Sequence[str]) -> Matches:
    scorer, cdist = import_module("rapidfuzz.fuzz").token_set_ratio, import_module("rapidfuzz.process").cdist
    plain = import_module("rapidfuzz.utils").default_process
    texts = [plain(text) for text in texts]
    found = []
    for start in range(0, len(texts), BLOCK_ROWS):
        ratios = cdist(texts[start : start + BLOCK_ROWS], texts[start:], scorer=scorer, score_cutoff=60, workers=1)
        left, right = np.nonzero(np.triu(ratios, 1))
        found.append(Matches(left + start, right + start, ratios[left, right] / 100))
    return concatenate_matches(found)


OF_LINES: dict[str, Callable[[Sequence[str]], Matches]] = {
    OURS: lambda texts: _by_model([texts], 0.01),
    "TF-IDF, scikit-learn": _by_tfidf,
    "RapidFuzz": _by_rapidfuzz,
}
