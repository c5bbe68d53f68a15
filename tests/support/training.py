"""gramvec-train, called as its user would, in this process; and models made without training."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result
from numpy.typing import NDArray

from gramvec.bundle.manifest import Manifest
from gramvec.features.spec import FeatureSpec
from gramvec_research.cli.papers import main as research_main
from gramvec_training.cli.main import main
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.encoders.bag import make_bag
from gramvec_training.export.bundle import NO_MEMO, export_bundle

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


def refused_before_torch(folder: Path, *arguments: str) -> str:
    """The one line on stderr of a call that fails in a process of its own, before a large library is imported."""
    program = (
        "import sys\nfrom gramvec_training.cli import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n    assert not {'torch', 'scipy', 'onnx'} & sys.modules.keys()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=folder, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.strip().split("\n")
    return line


def words_teach(folder: Path, texts: Sequence[str]) -> Path:
    """A bundle "first" in the folder, whose words say everything of these texts and whose n-grams next to nothing; and
    a config of a second model, which goes on from it as its own teacher, without [distillation]'s other settings."""
    spec = FeatureSpec(orders=(2, 3), words=True)
    vocabulary = build_vocabulary(texts, spec)
    table = np.random.default_rng(0).normal(0, 1, (len(vocabulary), 16)).astype(np.float32)
    table[[entry.kind == "ngram" for entry in vocabulary.entries()]] *= 0.05
    first, config = folder / "first", folder / "second.toml"
    export_table(
        first, name="first", kind="gramvec", spec=spec, vocabulary=vocabulary, table=table, golden_texts=texts[:3],
        parity_texts=texts[:9], precision="float32", memo=NO_MEMO, provenance={"license": "ours"}, card="",
    )  # fmt: skip
    config.write_text(
        '[model]\nname = "second"\nkind = "gramvec"\ndimension = 16\nactivation = "linear"\nbias = false\n'
        f"[features]\norders = [2, 3]\nwords = true\nnormalization = {[*spec.normalization]}\n"
        f'[start]\nbundle = "{first}"\nmax_ngrams = 0\nmax_words = 0\n'
        f'[export]\nprecision = "float32"\n[[texts]]\npath = "texts.txt"\n[distillation]\nteacher = "{first}"\n'
    )
    return config


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
    encoder = make_bag(table, bias, pooling=pooling, activation=activation, components=components)  # type: ignore[arg-type]
    return export_bundle(path, encoder=encoder, **rest)
