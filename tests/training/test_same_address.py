"""Tables of addresses are learned from both ways: as the commands read them, and with parts that share nothing."""

from __future__ import annotations

import numpy as np

from gramvec.jobs.pairs.figures import PLACES
from gramvec_training.data.pair_tables import compare_two_tables
from gramvec_training.runs.pair_model import APART, SHARED, SumCalibration, add_table_figures, learn

FIRST = ("anna", "boris", "carla", "dmitri", "elena", "frank", "greta", "henry", "ivana", "jorge")
LAST = ("moore", "schmidt", "kovacs", "petrov", "garcia", "lindqvist", "okafor", "tanaka", "dubois", "fisher")


HOUSES = np.array([row // 2 if row < 40 else row for row in range(80)])


def compare(*, addresses: bool):
    """Return the candidates of 80 people beside themselves, of whom 40 live in twos."""
    people = [f"{FIRST[row % 10]} {LAST[row // 10]}" for row in range(80)]
    streets = [f"{house + 3} {LAST[house % 10]} road" for house in HOUSES.tolist()]
    places = [f"{81_000 + house}" for house in HOUSES.tolist()]
    columns = [people, streets, places] if addresses else [people, [f"{row}" for row in range(80)]]
    truth = [(row, row) for row in range(80)]
    return compare_two_tables("houses", "made registers", "here", columns, columns, truth)


def test_what_the_commands_have_stands_beside_where_it_is_another() -> None:
    table = compare(addresses=True)
    assert table.shown is not None and table.shown.shape == table.figures.shape
    neighbors = (table.matches == 0) & (HOUSES[table.left] == HOUSES[table.right])
    evidence = [figures[neighbors, PLACES["evidence"]] for figures in (table.shown, table.figures)]
    assert neighbors.any() and (evidence[0] < evidence[1]).all()
    assert compare(addresses=False).shown is None


def test_it_is_learned_from_both_ways(monkeypatch) -> None:
    seen = []

    def fit(figures, match, weights, *_):
        seen.append((figures, match, weights))

    monkeypatch.setattr("gramvec_training.runs.pair_model.fit_trees", fit)
    table = compare(addresses=True)
    learn([table])
    learn([table._replace(shown=None)])
    (both, _, weights), (once, _, of_once) = seen
    assert len(both) == 2 * len(once) and not np.array_equal(both[: len(once)], both[len(once) :], equal_nan=True)
    np.testing.assert_allclose(weights.sum(), (APART + SHARED) * of_once.sum())


def test_what_the_first_trees_say_stands_beside_either() -> None:
    table = compare(addresses=True)
    sums, shown = np.full(len(table.left), 3.0), np.full(len(table.left), -3.0)
    whole = add_table_figures(table, sums, SumCalibration(), shown)
    assert whole.shown is not None and whole.shown.shape == whole.figures.shape
    assert not np.array_equal(whole.shown[:, -4:], whole.figures[:, -4:])
    assert add_table_figures(table, sums, SumCalibration()).shown is None
