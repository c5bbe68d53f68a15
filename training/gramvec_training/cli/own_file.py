"""A person's own file, or pipe, of pairs or of texts with labels: looked through, and the config that trains on it."""

from __future__ import annotations

import sys
from collections.abc import Sized
from pathlib import Path
from typing import TYPE_CHECKING

import click

# torch is imported inside the functions, so that a file is checked before it is loaded.
if TYPE_CHECKING:
    from gramvec_training.configuration import Config, Layout, OnBad


def own_config(
    own: Path,
    *,
    labelled: bool,
    start: str | None,
    layout: Layout | None,
    bad_rows: OnBad,
    held_out: float | None,
    epochs: int | None,
    rate: float | None,
    out: Path | None,
    bundle: Path | None,
    overwrite: bool,
    resume: bool,
) -> tuple[Config, Path, bool]:
    """The config, the run's folder, and whether that is still to be cleared: what a pipe gives lies there already.

    Raises InputError where there is no such file, no usable row in it or one that is refused, or no place for what a
    pipe gives, and BundleError where there is no bundle `start`.
    """
    from gramvec_training.readers import is_piped

    piped = is_piped(own)
    if piped and resume:
        raise click.UsageError(
            "A pipe is read once; give --out RUN --resume alone: what it gave lies in the run's folder."
        )
    name_from = bundle or (Path("mine") if piped else own)
    if piped:
        own, out = _spooled(own, name_from, start, out, overwrite=overwrite)
    _check(own, start, layout=layout, bad_rows=bad_rows, labelled=labelled)
    from gramvec_training.runs import pairs_config

    config = pairs_config(
        own,
        start=start,
        layout=layout,
        bad_rows=bad_rows,
        held_out=held_out,
        epochs=epochs,
        rate=rate,
        name_from=name_from,
        labelled=labelled,
    )
    return config, out or Path("runs") / config.model.name, overwrite and not piped


def given_as(own: Path) -> str:
    """The file as a command shows it; "-" for any pipe."""
    from gramvec_training.readers import is_piped
    from gramvec_training.runs import shown

    return "-" if is_piped(own) else shown(own)


def _spooled(pipe: Path, name_from: Path, start: str | None, out: Path | None, *, overwrite: bool) -> tuple[Path, Path]:
    from gramvec.bundle.resolve import find_bundle
    from gramvec_training.readers import spool
    from gramvec_training.runs import INPUT, make_way, model_name

    if start is not None:
        find_bundle(start)
    folder = out or Path("runs") / model_name(name_from)
    make_way(folder, overwrite=overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    spool(pipe, folder / INPUT)
    return folder / INPUT, folder


def _check(source: Path, start: str | None, *, layout: Layout | None, bad_rows: OnBad, labelled: bool = False) -> None:
    """Read the file once and find the bundle to go on from; on a terminal, say what was found."""
    from gramvec.bundle.resolve import find_bundle
    from gramvec_training.readers import read_label_texts, read_paraphrases

    if start is not None:
        find_bundle(start)
    rows: Sized
    if labelled:
        rows, _ = read_label_texts(source, on_bad=bad_rows)
    else:
        rows, _ = read_paraphrases(source, layout=layout, on_bad=bad_rows)
    if sys.stderr.isatty():
        origin = f", going on from {start}" if start is not None else ""
        click.echo(f"{source}: {len(rows):,} usable rows{origin}; loading ...", err=True)
