"""gramvec-train, called as its user would, in this process; and models made without training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result
from numpy.typing import NDArray

from gramvec.bundle.bundle import Manifest
from gramvec_research.cli.papers import main as research_main
from gramvec_training.cli.main import main
from gramvec_training.encoders.bag import bag_of
from gramvec_training.export.bundle import export_bundle

Floats = NDArray[np.float32]


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def research(*arguments: str | Path) -> Result:
    """Call `python -m gramvec_research` in this process."""
    return CliRunner().invoke(research_main, [str(argument) for argument in arguments])


def sentence(result: Result) -> str:
    """The one line that a failure leaves on stderr."""
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.strip().split("\n")
    return line


def export_table(
    path: Path,
    *,
    table: Floats,
    bias: Floats | None = None,
    pooling: str = "sum",
    activation: str = "linear",
    components: Floats | None = None,
    **rest: Any,
) -> Manifest:
    """Write the bundle of a bag with these weights."""
    encoder = bag_of(table, bias, pooling=pooling, activation=activation, components=components)  # type: ignore[arg-type]
    return export_bundle(path, encoder=encoder, **rest)
