"""A cut of all that experiments read, so that every one of them runs in seconds."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from gramvec_training.experiments import Inputs, raw_texts
from gramvec_training.files import write_atomically
from gramvec_training.readers import numbered_lines, read_vectors, vectors_at

_PAIRS, _LEARNED, _WORDS = 100, 2_000, 20_000  # rows of a set, of a training file, of the vectors
_LABELLED = 200  # rows of a file of labelled texts
_TAGGED = 100  # sentences of a part of a treebank


def cut(inputs: Inputs, folder: Path) -> Inputs:
    """The same inputs with small copies below `folder`: of sets and training files rows from all over, of vectors the
    first words. One seed.
    """
    sets = tuple(_folder(path, folder / "sets" / path.name) for path in inputs.sets)
    words = tuple(_folder(path, folder / "words" / path.name) for path in inputs.word_sets)
    data, in_domain, labelled = inputs.data, inputs.in_domain, inputs.labelled
    if labelled is not None:
        for file in sorted(labelled.glob("*/*.tsv*")):
            _rows(file, folder / "labelled" / file.relative_to(labelled), _LABELLED)
        # SICK's scores, which lie beside the labelled texts as they are.
        trial = labelled.parent / "sick" / "trial.tsv"
        if trial.is_file():
            _rows(trial, folder / "sick" / "trial.tsv", _LABELLED)
        labelled = folder / "labelled"
    if data is not None:
        for file in sorted(data.glob("*.tsv.gz")):
            _rows(file, folder / "train" / file.name, _LEARNED)
        for file in raw_texts(inputs):
            _rows(file, folder / "train" / "raw" / file.name, _LEARNED)
        data = folder / "train"
    if in_domain is not None:
        in_domain = _rows(in_domain, folder / "phrases" / in_domain.name, _PAIRS)
    tagged = inputs.tagged
    if tagged is not None:
        for file in sorted(path for ending in ("conllu", "conllu.gz", "tsv") for path in tagged.glob(f"*.{ending}")):
            _sentences(file, folder / "tagged" / file.name, _TAGGED)
        tagged = folder / "tagged"
    return replace(
        inputs,
        vectors=_vectors(inputs.vectors, folder / "vectors.npy"),
        sets=sets,
        word_sets=words,
        data=data,
        in_domain=in_domain,
        labelled=labelled,
        tagged=tagged,
        work=folder / "models",
        seeds=inputs.seeds[:1],
    )


def _folder(path: Path, out: Path) -> Path:
    if path.is_file():
        return _rows(path, out, _PAIRS)
    for file in sorted(path.glob("*.tsv")):
        _rows(file, out / file.name, _PAIRS)
    return out


def _rows(path: Path, out: Path, number: int) -> Path:
    lines = [line.rstrip(b"\r\n") + b"\n" for _, line in numbered_lines(path)]
    return _written(_spread(lines, number), out)


def _sentences(path: Path, out: Path, number: int) -> Path:
    lines = [line.rstrip(b"\r\n") for _, line in numbered_lines(path)]
    sentences = (b"\n".join(part) for empty, part in itertools.groupby(lines, lambda line: not line) if not empty)
    return _written(_spread([sentence + b"\n\n" for sentence in sentences], number), out)


def _written(parts: Iterable[bytes], out: Path) -> Path:
    data = b"".join(parts)
    out.parent.mkdir(parents=True, exist_ok=True)
    packed = gzip.compress(data, mtime=0) if out.suffix == ".gz" else data
    write_atomically(out, lambda handle: handle.write(packed))
    return out


def _spread(lines: list[bytes], number: int) -> list[bytes]:
    step = max(1, len(lines) // number)
    return lines[::step][:number]


def _vectors(place: Path, out: Path) -> Path:
    words, vectors = read_vectors(vectors_at(place))
    out.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{word}\n" for word in words[:_WORDS])
    write_atomically(out.with_suffix(".txt"), lambda handle: handle.write(text.encode()))
    write_atomically(out, lambda handle: np.save(handle, vectors[:_WORDS], allow_pickle=False))
    return out
