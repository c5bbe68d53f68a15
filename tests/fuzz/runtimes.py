"""Runtimes against each other on odd texts in odd batches: native, both graphs of ONNX Runtime, CUDA's on the CPU."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from conftest import MODELS
from fuzz import mutate
from gramvec.bundle.bundle import open_bundle
from gramvec.runtime import cuda
from gramvec.runtime.base import Runtime
from gramvec.runtime.cuda import CudaRuntime
from gramvec.runtime.exact import ExactTable
from gramvec.runtime.native import NativeRuntime, vector_of_no_rows
from gramvec.runtime.ort import OnnxRuntime, cpu_session
from gramvec.runtime.select import AGREEMENT, differences
from gramvec.text.arrays import Floats

EXACT_ROWS, AGREEMENT_OF_LONG = 1_000, 1e-2
SHIPPED = ("gramvec-en", "charagram-phrase", "paragram-phrase")
LETTERS = "thecatsonm.,!12 \u65e5\u03c3\u00e9\u2581\u3000"
# Without features in most models: nothing, spaces of all kinds, emoji, scripts and private characters unknown to all.
ODD = ["", " ", "\t\n\r", "\u200b", "\u00ad", "\ufeff", "\U0001f600", "\U0001f600\u200d\U0001f680", "\U00012000",
       "\ue000", "\U0010ffff", "\u1a20\u1a21", "x", ".", "\u0301"]  # fmt: skip
KNOWN = ["a man is playing the guitar", "vehicles", "definately recieved teh pacakge"]


def prepare(bases: Path) -> None:
    """Bundles to start from: the shipped ones, and small ones of every kind of table."""
    mutate.write_bases(bases)


def opened(path: Path) -> tuple[NativeRuntime, dict[str, Runtime]]:
    bundle = open_bundle(path)
    others: dict[str, Runtime] = {
        "onnx": OnnxRuntime.from_bundle(bundle),
        "whole": OnnxRuntime(bundle.graph_path, bundle.manifest.dimension, of_no_rows=vector_of_no_rows(bundle)),
    }
    if ExactTable.from_bundle(bundle) is not None:
        cuda.cuda_session, cuda._cudart = cpu_session, lambda _: None  # type: ignore[assignment, misc]
        others["cuda"] = CudaRuntime(bundle)
    return NativeRuntime(bundle), others


def one_round(numbers: random.Random, bases: Path, _: Path) -> None:
    """Batches of one model, in each runtime: in any order and cut anywhere, the same bytes as each text alone."""
    path = numbers.choice([*(MODELS / name for name in SHIPPED), *(bases / name for name in sorted(mutate.SPECS))])
    bundle = open_bundle(path)
    native, others = opened(path)
    for _ in range(20):
        texts = numbers.choices(ODD, k=numbers.choice([1, 1, 2, 5, 17])) + numbers.choices(
            KNOWN, k=numbers.randrange(4)
        )
        texts += mutate.texts(numbers, LETTERS) if numbers.random() < 0.5 else []
        numbers.shuffle(texts)
        alone = np.concatenate([native.embed(bundle.memoized, [text]).vectors for text in texts])
        assert native.embed(bundle.memoized, texts).vectors.tobytes() == alone.tobytes(), texts
        counts = bundle.memoized(texts).counts
        for name, runtime in others.items():
            runtime.embed(bundle.memoized, [numbers.choice(KNOWN)])  # what is left in memory
            found: list[Floats] = []
            rest = list(texts)
            while rest:
                most = numbers.choice([1, 2, 16, len(rest)])
                found.append(runtime.embed(bundle.memoized, rest[:most]).vectors)
                del rest[:most]
            vectors = np.concatenate(found)
            again = runtime.embed(bundle.memoized, texts).vectors
            assert again.tobytes() == vectors.tobytes(), (name, texts)
            assert vectors[counts == 0].tobytes() == alone[counts == 0].tobytes(), (name, texts)
            # Whole numbers above 2^24 are rounded by graphs that add floats: in texts of over a thousand rows.
            apart = differences(vectors, alone)
            assert apart[counts <= EXACT_ROWS].max(initial=0.0) <= AGREEMENT, (name, texts)
            assert apart.max(initial=0.0) <= AGREEMENT_OF_LONG, name
    for one in (native, *others.values()):
        one.close()
