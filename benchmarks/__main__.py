"""The benchmark runner: python -m benchmarks [--only PART,PART] [--model NAME] [--data DIR] [--json FILE]."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from importlib import import_module
from pathlib import Path
from typing import Any

import click
import orjson

from benchmarks.measure import Setting, machine
from benchmarks.results import Part
from benchmarks.texts import sentences
from gramvec.bundle.resolve import find_bundle
from gramvec.errors import GramvecError

# Each is a module of this package with run(Setting) -> Part.
PARTS = (
    "features", "embedder", "http", "protocol", "memory", "startup", "training", "bulk", "search", "index", "match",
    "dedupe", "classify", "static",
)  # fmt: skip


def dev_folder() -> Path:
    """Return the folder of development data in GRAMVEC_DATA, or one that is not there."""
    return Path(os.environ.get("GRAMVEC_DATA") or "data") / "dev"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", default=",".join(PARTS), show_default=True, help="Which parts to run.")
@click.option("--model", default="gramvec-en", show_default=True, help="A name in models/, or a bundle's folder.")
@click.option("--data", type=click.Path(path_type=Path), default=dev_folder, show_default="$GRAMVEC_DATA/dev",
              help="A folder with sts*/*.tsv; the repository's own prose without it.")  # fmt: skip
@click.option("--texts", type=click.IntRange(min=1), default=4096, show_default=True, help="How many sentences.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True,
              help="Medians of so many interleaved rounds.")  # fmt: skip
@click.option("--json", "output", type=click.Path(path_type=Path, dir_okay=False), help="Write the results there, too.")
def main(only: str, model: str, data: Path, texts: int, rounds: int, output: Path | None) -> None:
    """Measure gramvec on this machine, which should be otherwise idle.

    docs/benchmarks.md describes each part and its baseline.
    """
    wanted = [name.strip() for name in only.split(",")]
    if unknown := set(wanted) - set(PARTS):
        raise click.UsageError(f"--only knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    if output and not output.parent.is_dir():
        raise click.UsageError(f"--json: there is no folder {output.parent}; make it first")
    try:
        results = measured([name for name in PARTS if name in wanted], model, sentences(data, texts), rounds, data)
    except GramvecError as error:
        raise click.ClickException(str(error)) from error
    if output:
        output.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2) + b"\n")
    if "failed" in results:
        raise click.ClickException(f"something failed in {', '.join(results['failed'])}; the lines above say what")


def measured(parts: list[str], model: str, texts: list[str], rounds: int, data: Path | None = None) -> dict[str, Any]:
    """Run the parts, also after one has failed, and return the content of the JSON file (benchmarks/results.py)."""
    find_bundle(model)  # before minutes of work, not after
    where = machine()
    for key, value in where.items():
        print(f"{key}: {value}")
    settings = {"model": model, "texts": len(texts), "characters": sum(map(len, texts)), "rounds": rounds}
    results: dict[str, Any] = {"machine": where, "settings": settings, "parts": {}}
    failed = []
    for name in parts:
        part = Part()
        with part.failures_noted(name):
            part = import_module(f"benchmarks.{name}").run(Setting(model, texts, rounds, data or dev_folder()))
        results["parts"][name] = part.as_json()
        failed += [name] if part.failed else []
    return results | ({"failed": failed} if failed else {})


if __name__ == "__main__":
    main()
