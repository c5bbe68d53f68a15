"""What a short search waits for behind sixty broad ones, in CPU time: python -m benchmarks.side_jobs.

A broad search runs in pieces of eight queries. The service's scheduler lets a shorter one in after the piece under way;
a limiter that serves in the order of arrival lets it in after a piece of each that waits. What is timed is a piece, by
the processor's clock, so it holds on a busy machine.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import click

import gramvec
from benchmarks.measure import ROOT, machine
from benchmarks.texts import sentences
from gramvec.jobs.search.snapshot import Snapshot
from gramvec.lexical.demands import demands_of
from gramvec.server.job_routes.search import PIECE_QUERIES

BROAD, WORDS, TRIES, SEED = 60, 8, 15, 3
LIMIT_MS = 60


def cpu_ms(snapshot: Snapshot, embedder: gramvec.Embedder, queries: list[str], k: int) -> float:
    """Return the CPU time of a search for these queries together, the least of several."""
    asked = [demands_of(query) for query in queries]
    units = embedder.raw([query.text for query in asked]).units
    times = []
    for _ in range(TRIES):
        began = time.process_time()
        snapshot.find(asked, units, k)
        times.append(time.process_time() - began)
    return min(times) * 1e3


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", type=click.IntRange(min=100), default=100_000, show_default=True, help="Of the index.")
def main(rows: int) -> None:
    """Print what a short search waits for behind sixty broad ones."""
    print(machine())
    chosen = random.Random(SEED)
    words = [word for text in sentences(None, 4096) for word in text.split()]
    texts = [" ".join(chosen.choices(words, k=WORDS)) for _ in range(rows)]
    with (
        gramvec.load(ROOT / "models" / "paragram-phrase", device="cpu", threads=1) as embedder,
        tempfile.TemporaryDirectory() as folder,
    ):
        snapshot = gramvec.Index.build(Path(folder, "a.index"), texts, model=embedder).snapshot()
        for k in (10, 100):
            one = cpu_ms(snapshot, embedder, texts[:1], k)
            piece = cpu_ms(snapshot, embedder, texts[:PIECE_QUERIES], k)
            print(
                f"{rows} rows, {k} documents a query: a query {one:.1f} ms, a piece of {PIECE_QUERIES} {piece:.1f} ms."
                f" Behind {BROAD}: {piece:.0f} ms by the scheduler, {BROAD * piece:.0f} by the order of arrival,"
                f" {BROAD * one:.0f} with pieces of a query; wanted {LIMIT_MS}"
            )


if __name__ == "__main__":
    main()
