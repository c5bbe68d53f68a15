"""What an experiment was made of, and by which commit: so that a result can be trusted, or made again."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from gramvec_training.experiments import Inputs, raw_texts
from gramvec_training.files import digest
from gramvec_training.readers import vectors_at

_SHOWN = 16  # hex digits of a SHA-256
_BUNDLES = ("charagram-phrase", "paragram-phrase")


def digests_of(
    inputs: Inputs, *, learns: bool, labels: bool = False, tags: bool = False, raw: bool = False
) -> dict[str, str]:
    """The first 16 hex digits of the SHA-256 of the vectors, frequencies, sets and, where it learns, training files;
    with `labels` of the labelled texts, too. With `tags` that of the treebank alone; with `raw` raw texts are what it
    learns from, in place of the training files.

    Of a folder they are those of its files' names and contents. What is not there is left out: the experiment that
    needs it says so.
    """
    if tags:
        return _shown({"treebank": inputs.tagged})
    named: dict[str, Path | None] = {
        "vectors": vectors_at(inputs.vectors),
        "norms": inputs.norms,
        **{f"frequencies {path.name}": path for path in inputs.frequencies},
        **{f"set {path.name}": path for path in (*inputs.sets, *inputs.word_sets)},
        **{f"model {name}": inputs.models / name for name in _BUNDLES},
    }
    if raw:
        named |= {f"raw {path.name}": path for path in raw_texts(inputs)}
    elif learns:
        named |= {"pairs of phrases": inputs.in_domain}
        named |= {f"data {path.name}": path for path in _files(inputs.data, "*.tsv.gz")}
    if labels:
        named |= {"labelled texts": inputs.labelled}
    return _shown(named)


def _shown(named: Mapping[str, Path | None]) -> dict[str, str]:
    return {name: digest(path.resolve())[:_SHOWN] for name, path in named.items() if path is not None and path.exists()}


def _files(folder: Path | None, pattern: str) -> Iterable[Path]:
    return sorted(folder.glob(pattern)) if folder is not None else ()


@functools.cache  # what runs is what was there when it began
def commit() -> str | None:
    """The commit that this code is of, with "-dirty" where it was changed since; None where it is no checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--match="]
    try:
        done = subprocess.run(  # noqa: S603 (a fixed command)
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() or None
