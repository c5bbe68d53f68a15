"""Train CHARAGRAM-PHRASE, PARAGRAM-PHRASE and SIF on the smallest open cut, score and serve them: `make train`.

python training/make_first_models.py FOLDER. FOLDER is the one that GRAMVEC_DATA names; what it lacks of the cut is
fetched, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from corpora.recipe import read_table
from fetch_data import fetch_all
from gramvec.errors import GramvecError
from gramvec_training import RunOptions, evaluate, fit
from gramvec_training.evaluation.report import format_table

CONFIGS = Path(__file__).parent / "configs"
MODELS = Path(__file__).parents[1] / "models"
NAMES = ("charagram-phrase", "paragram-phrase", "sif")  # SIF weighs the words of the one before
SECONDS = 60.0  # until a service answers
ASKED = ("a red car", "the car is red", "a green tea")


def list_files(configs: Sequence[Path]) -> list[str]:
    """Return the files that some configs read, by their paths in the data's folder; a set of several is its folder."""
    files: dict[str, None] = {}
    for path in configs:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        if "corpora" in values:
            values |= tomllib.loads((path.parent / values["corpora"]).read_text(encoding="utf-8"))
        read = [source["path"] for source in (*values.get("data", ()), *values.get("texts", ()))]
        read += [values["sif"]["frequencies"]] if "sif" in values else []
        files |= dict.fromkeys(re.sub("^train/../", "", f"train/{file}") for file in [*read, *values["dev"]["sets"]])
    return list(files)


def fetch_missing(files: Sequence[str], folder: Path, *, mirror: str | None) -> None:
    """Fetch what the folder lacks of the files.

    Raises:
        ClickException: Something cannot be had; the sentence says what to bring.
    """
    lacking = [file for file in files if not (folder / file).exists()]
    if not lacking:
        return
    click.echo(f"fetching {', '.join(lacking)} into {folder}", err=True)
    names = [file.split(".", 1)[0] for file in lacking]
    try:
        failed = fetch_all(read_table().select(names), folder, mirror=mirror)
    except (GramvecError, OSError) as error:
        raise click.ClickException(f"{error}; lacking: {', '.join(lacking)}") from error
    if failed:
        raise click.ClickException("; ".join(failed.values()))


def ask_served(bundle: Path) -> str:
    """Serve a bundle for one question; return how near the second and the third text are to the first.

    Raises:
        ClickException: The service does not answer within a minute.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gramvec", "serve", "--model", str(bundle), "--port", str(port)]
    body = json.dumps({"query": ASKED[0], "documents": list(ASKED[1:])}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/rerank", data=body, headers={"Content-Type": "application/json"}
    )
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as service:  # noqa: S603
        try:
            ends = time.monotonic() + SECONDS
            while time.monotonic() < ends and service.poll() is None:
                try:
                    with urllib.request.urlopen(request, timeout=SECONDS) as response:  # noqa: S310
                        return str(response.read().decode())
                except OSError:
                    time.sleep(0.1)
        finally:
            service.terminate()
            _, said = service.communicate(timeout=SECONDS)
    raise click.ClickException(f"{bundle}: the service did not answer; it printed: {said.strip()[-500:]}")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("runs/first"), show_default=True,
              help="Where runs and models are written.")  # fmt: skip
@click.option("--configs", type=click.Path(path_type=Path, exists=True, file_okay=False), default=CONFIGS / "small",
              help="Folder of the three configs.  [default: training/configs/small]")  # fmt: skip
@click.option("--mirror", metavar="URL", help="Where OWNER/NAME/COMMIT/PATH lies, instead of GitHub.")
def main(folder: Path, out: Path, configs: Path, mirror: str | None) -> None:
    """Train the papers' models on a cut of FOLDER, score them beside the shipped ones, and serve each once."""
    began = time.monotonic()
    paths = [configs / f"{name}.toml" for name in NAMES]
    files = list_files(paths)
    fetch_missing(files, folder, mirror=mirror)
    bundles = []
    for name, path in zip(NAMES, paths, strict=True):
        click.echo(f"training {name}", err=True)
        run = RunOptions(overwrite=True, device="cpu")
        bundles.append(fit(path, out / "models" / name, data=folder / "train", out=out / name, run=run))
    sets = [folder / file for file in files if file.startswith("dev/")]
    shipped = [Path(os.path.relpath(MODELS / name)) for name in NAMES if (MODELS / name).is_dir()]
    click.echo(format_table(evaluate([*bundles, *shipped], sets, device="cpu")))
    for bundle in bundles:
        click.echo(f"{bundle}: asked for {ASKED[0]!r}, it answers {ask_served(bundle)}")
    click.echo(f"{time.monotonic() - began:.0f} s; to serve one: gramvec serve --model {bundles[0]}")


if __name__ == "__main__":
    try:
        main()
    except GramvecError as error:
        raise SystemExit(f"make_first_models: {error}") from error
