"""python -m benchmarks [--only features,runtime,http,training] [--model NAME] [--data DIR] [--json FILE]"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import click
import orjson

import gramvec
from benchmarks import features, http, runtime, training
from benchmarks.measure import machine
from benchmarks.texts import sentences

PARTS = ("features", "runtime", "http", "training")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", default=",".join(PARTS), show_default=True, help="Which parts to run.")
@click.option("--model", default="gramvec-en", show_default=True)
@click.option("--data", type=click.Path(path_type=Path), default=Path("../shared/data/dev"), show_default=True,
              help="A folder with sts*/*.tsv; the repository's own prose without it.")  # fmt: skip
@click.option("--texts", default=8192, show_default=True, help="How many sentences.")
@click.option("--rounds", default=5, show_default=True, help="Medians of so many interleaved rounds.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the results there, too.")
def main(only: str, model: str, data: Path, texts: int, rounds: int, output: Path | None) -> None:
    """Measure gramvec on this machine. Leave the machine alone meanwhile."""
    wanted = only.split(",")
    if unknown := set(wanted) - set(PARTS):
        raise click.UsageError(f"--only knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    where = machine()
    for key, value in where.items():
        print(f"{key}: {value}")
    real = sentences(data, texts)
    results: dict[str, object] = {"machine": where}
    embedder = gramvec.load(model, device="cpu")
    if "features" in wanted:
        results["features"] = features.run(embedder, real, rounds)
    if "runtime" in wanted:
        results["runtime"] = runtime.run(embedder, real, rounds)
    if "http" in wanted:
        results |= http.run(model, real, rounds)
    if "training" in wanted:
        results["training"] = training.run(real, rounds)
    if output:
        output.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
