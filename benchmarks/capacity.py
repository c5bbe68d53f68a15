"""How many replicas, how much memory, network and money for a load: python -m benchmarks.capacity --load 50000

By calculation from benchmarks/results/cpu.json. Its tables stand in docs/scaling.md; `python -m benchmarks.readme` puts
them there.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import click
import numpy as np
import orjson

from benchmarks.measure import ROOT

RESULTS = ROOT / "benchmarks" / "results" / "cpu.json"
MANIFEST = ROOT / "models" / "gramvec-en" / "manifest.json"
SERVE = "gramvec serve"
BATCHES = (1, 32, 256)  # texts a request, as the benchmark sends them
LOADS = (1_000, 10_000, 100_000)
WORKERS = (1, 2, 4, 8)
LINKS = (1, 10, 25)  # Gbit/s
CORPUS = 100_000_000


@dataclass(frozen=True)
class Assumptions:
    """What no benchmark can tell.

    utilisation: share of its core that a replica may use on average, in (0, 1]. price: of a core for an hour, with the
    memory that comes with it, in your currency. least: fewest replicas, so that one may be lost.
    """

    utilisation: float = 0.6
    price: float = 0.04
    least: int = 2


class Capacity:
    """What the results say, in units for planning; rates are by the server's CPU seconds, so for one core."""

    def __init__(self, results: Any, assumptions: Assumptions | None = None) -> None:
        self._groups = {name: group for part in results["parts"].values() for name, group in part["groups"].items()}
        self.settings = results["settings"]
        self.machine = results["machine"]
        self.assumptions = assumptions or Assumptions()

    def _row(self, group: str, name: str) -> Any:
        found = [row for row in self._groups[group]["rows"] if row["name"] == name or row["name"].endswith(name)]
        if len(found) != 1:
            raise SystemExit(f"{RESULTS.name}: {group} must have one row {name!r}, not {len(found)}")
        return found[0]

    @property
    def library(self) -> float:
        """Texts a CPU second of the library in calls of 512."""
        return float(self._row("embedder", "shipped), native")["per_cpu_second"])

    def seconds(self, batch: int) -> float:
        """CPU seconds of a request of so many texts: between the sizes measured on a line, beyond in proportion."""
        measured = [1 / self._row(f"http_{size}", SERVE)["per_cpu_second"] for size in BATCHES]
        if batch > BATCHES[-1]:
            return float(measured[-1] * batch / BATCHES[-1])
        return float(np.interp(batch, BATCHES, measured))

    def served(self, batch: int) -> float:
        """Texts a CPU second over HTTP, in requests of so many."""
        return batch / self.seconds(batch)

    def memory(self, workers: int) -> float:
        """MB of a replica: one worker's resident memory, and what each further one adds to that of all."""
        first, two = (self._row("memory", f"{SERVE}, native: {name}") for name in ("1 worker", "2 workers"))
        return float(first["rss_mb"] + (workers - 1) * (two["pss_mb"] - first["pss_mb"]))

    @property
    def start(self) -> float:
        """Seconds until a new replica is ready."""
        return float(self._row("startup", f"{SERVE}, native")["seconds"])

    def replicas(self, load: float, batch: int) -> int:
        """Replicas of one worker for so many texts a second in requests of so many."""
        return max(self.assumptions.least, ceil(load / (self.served(batch) * self.assumptions.utilisation)))

    def cost(self, rate: float, utilisation: float = 1.0) -> float:
        """Of 100 million texts at so many texts a CPU second."""
        return CORPUS / (rate * utilisation) / 3600 * self.assumptions.price


def vector_bytes() -> dict[str, float]:
    """Bytes of a vector's row in an answer, by encoding: the mean over the model's golden texts, of length 1."""
    manifest = orjson.loads(MANIFEST.read_bytes())
    vectors = np.array([golden["vector"] for golden in manifest["golden"]], np.float64)
    vectors = vectors[np.linalg.norm(vectors, axis=1) > 0]
    rows = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    whole = np.rint(rows * 127).astype(np.int8)
    sizes: dict[str, float] = {}
    for name, numbers in (("float32", rows), ("int8", whole), ("ubinary", np.packbits(rows > 0, axis=1))):
        # With the comma and the quotes around it.
        sizes[f"{name}, JSON"] = (len(orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)) - 1) / len(numbers)
        sizes[f"{name}, base64"] = len(base64.b64encode(numbers[0].tobytes())) + 3
        sizes[f"{name}, raw or .npy"] = numbers[0].nbytes
    return sizes


def rates(capacity: Capacity) -> str:
    rows = [("`embed` of the library, 512 texts a call", capacity.library)]
    rows += [(f"HTTP, {_texts(batch)} a request", capacity.served(batch)) for batch in BATCHES]
    lines = ["| one core | texts a second | texts an hour | core hours for 100 million |", "| --- | --- | --- | --- |"]
    for name, rate in rows:
        lines.append(f"| {name} | {rate:,.0f} | {rate * 3600 / 1e6:,.1f} million | {CORPUS / rate / 3600:,.2f} |")
    settings = capacity.settings
    note = (
        f"Texts of {settings['characters'] / settings['texts']:.0f} characters, vectors as JSON, by the server's CPU "
        f"time. {capacity.machine['processor']}; commit {capacity.machine['commit']}."
    )
    return "\n".join([*lines, "", note])


def memory(capacity: Capacity) -> str:
    lines = ["| workers in a replica | MB | MB a worker |", "| --- | --- | --- |"]
    for workers in WORKERS:
        found = capacity.memory(workers)
        lines.append(f"| {workers} | {found:,.0f} | {found / workers:,.0f} |")
    return "\n".join([*lines, "", f"A new replica is ready after {capacity.start:.1f} s."])


def cost(capacity: Capacity) -> str:
    price, at = capacity.assumptions.price, capacity.assumptions.utilisation
    lines = ["| 100 million texts | core kept busy | cost |", "| --- | --- | --- |"]
    lines.append(f"| in bulk, with the library | 100 % | {capacity.cost(capacity.library):,.3f} |")
    for batch in BATCHES:
        found = capacity.cost(capacity.served(batch), at)
        lines.append(f"| over HTTP, {_texts(batch)} a request | {_percent(at)} | {found:,.3f} |")
    return "\n".join([*lines, "", f"At {price:.2f} for a core and an hour."])


def network(capacity: Capacity) -> str:
    rate = capacity.served(BATCHES[-1])
    columns = " | ".join(f"cores that fill {link} Gbit/s" for link in LINKS)
    lines = [f"| a vector of 300 as | bytes | Mbit/s of one core | {columns} |", "| --- " * (3 + len(LINKS)) + "|"]
    for name, size in vector_bytes().items():
        bits = rate * size * 8
        cells = " | ".join(f"{link * 1e9 / bits:,.0f}" for link in LINKS)
        lines.append(f"| {name} | {size:,.0f} | {bits / 1e6:,.0f} | {cells} |")
    return "\n".join([*lines, "", f"At {rate:,.0f} texts a second, as in requests of {BATCHES[-1]} texts."])


def replicas(capacity: Capacity) -> str:
    sizes = vector_bytes()
    columns = " | ".join(f"{_texts(batch)} a request" for batch in BATCHES)
    head = f"| texts a second | {columns} | Gbit/s as JSON | Gbit/s as int8, raw |"
    lines = [head, "| --- " * (3 + len(BATCHES)) + "|"]
    for load in LOADS:
        cells = " | ".join(f"{capacity.replicas(load, batch):,}" for batch in BATCHES)
        wide, narrow = (load * sizes[name] * 8 / 1e9 for name in ("float32, JSON", "int8, raw or .npy"))
        lines.append(f"| {load:,} | {cells} | {wide:.2f} | {narrow:.3f} |")
    least, at = capacity.assumptions.least, capacity.assumptions.utilisation
    note = f"each with a core of which {_percent(at)} is used; at least {least}, so that one may be lost."
    return "\n".join([*lines, "", f"Replicas of one worker, {note}"])


def _texts(count: int) -> str:
    return f"{count} text{'s' * (count > 1)}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


BLOCKS: dict[str, Callable[[Capacity], str]] = {
    "rates": rates, "memory": memory, "cost": cost, "network": network, "replicas": replicas,
}  # fmt: skip


def blocks() -> dict[str, Callable[[], str]]:
    """The tables of docs/scaling.md, from the committed results."""
    return {name: lambda make=make: make(Capacity(_results())) for name, make in BLOCKS.items()}  # type: ignore[misc]


def _results() -> Any:
    return orjson.loads(RESULTS.read_bytes())


@click.command()
@click.option("--load", type=click.FloatRange(min=0, min_open=True), required=True, help="Texts a second at the peak.")
@click.option("--batch", type=click.IntRange(min=1, max=2048), default=32, show_default=True, help="Texts a request.")
@click.option(
    "--utilisation",
    type=click.FloatRange(0, 1, min_open=True),
    default=Assumptions.utilisation,
    show_default=True,
    help="Share of its core that a replica may use.",
)
@click.option(
    "--price",
    type=click.FloatRange(min=0),
    default=Assumptions.price,
    show_default=True,
    help="Of a core for an hour.",
)
def main(load: float, batch: int, utilisation: float, price: float) -> None:
    """Print what a load takes: replicas of one worker, memory, network, cost."""
    capacity = Capacity(_results(), Assumptions(utilisation, price))
    count = capacity.replicas(load, batch)
    sizes = vector_bytes()
    bits = [load * sizes[name] * 8 / 1e9 for name in ("float32, JSON", "float32, raw or .npy", "int8, raw or .npy")]
    click.echo(f"one core       {capacity.served(batch):,.0f} texts a second in requests of {batch}")
    click.echo(f"replicas       {count:,} of one worker, at {_percent(utilisation)} of a core each")
    click.echo(f"memory         {count * capacity.memory(1) / 1000:,.1f} GB in all")
    click.echo(f"network        {bits[0]:.2f} Gbit/s of JSON, {bits[1]:.2f} of float32, {bits[2]:.2f} of int8")
    corpus = capacity.cost(capacity.served(batch), utilisation)
    click.echo(f"cost           {count * price:,.2f} an hour, {corpus:,.2f} for 100 million texts")


if __name__ == "__main__":
    main()
