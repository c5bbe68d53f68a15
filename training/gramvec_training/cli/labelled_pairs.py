"""Of `gramvec-train fit --pairs` the way of a file with labels: weights of n-grams, in seconds, without a run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from gramvec_training.cli.support import seconds_taken

if TYPE_CHECKING:
    from gramvec_training.configuration import Layout, OnBad

Learn = Literal["weights", "rows"]


def weighs(pairs: Path | None, start: str | None, learn: Learn | None, layout: Layout | None) -> bool:
    """Whether weights are to be learned: as `learn` says, or where there is a start and the file has labels.

    Raises InputError where the file is missing or no text.
    """
    from gramvec_training.readers import holds_labels, is_piped

    if pairs is None:
        if learn is not None:
            raise click.UsageError("--learn goes with --pairs.")
        return False
    if learn is not None:
        return learn == "weights"
    return start is not None and layout in (None, "pairs") and not is_piped(pairs) and holds_labels(pairs)


def learn_weights(
    pairs: Path | None, start: str | None, bundle: Path | None, bad_rows: OnBad, refused: list[str]
) -> None:
    """Learn, write the bundle and print the report. Raises UsageError for options that do not go with it."""
    from gramvec_training.families import pair_report
    from gramvec_training.readers import is_piped, spool
    from gramvec_training.runs import INPUT, learn_identity

    assert pairs is not None
    if start is None or bundle is None:
        raise click.UsageError("Labels weigh the n-grams of a model: give --from BUNDLE and --export FOLDER.")
    if refused:
        raise click.UsageError(f"{refused[0]} does not go with labels; leave it out, or give --learn rows.")
    with tempfile.TemporaryDirectory(prefix="gramvec-") as folder:
        file = pairs
        if is_piped(pairs):
            file = Path(folder) / INPUT
            spool(pairs, file)
        manifest, report = learn_identity(file, start, bundle, on_bad=bad_rows, name=bundle.resolve().name)
    click.echo(pair_report(report))
    assert manifest.identity is not None
    columns = manifest.identity.columns
    click.echo(f"{bundle}: {columns} lexical columns, to be had with --space lexical; {seconds_taken():.0f} s")
