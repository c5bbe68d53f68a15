"""Bundles with changed manifests and files, digests made right: each opens and can be used, or ends in one sentence."""

from __future__ import annotations

import json
import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np

from fuzz import graphs, mutate
from gramvec.bundle.bundle import Bundle, open_bundle
from gramvec.embed.embedder import Embedder
from gramvec.errors import BackendError, BundleError, GramvecError, InputError
from gramvec.explain.contributions import explain
from gramvec.explain.neighbors import nearest_ngrams, nearest_words
from gramvec.explain.row_vectors import open_weights
from gramvec.runtime.native import NativeRuntime
from hostile.bundles.craft import manifest, packed, read


def prepare(bases: Path) -> None:
    """Bundles to start from."""
    graphs.prepare(bases)


def one_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    """One bundle."""
    made = Path(
        shutil.copytree(bases / numbers.choice([*sorted(mutate.SPECS), *graphs.BEYOND_BAGS]), folder / "bundle")
    )
    for _ in range(numbers.choice([1, 1, 2])):
        change(numbers, made)
    if numbers.random() < 0.95:
        sign(made)
    try:
        bundle = open_bundle(made, compiled=numbers.random() < 0.7)
    except BundleError as error:
        mutate.check_sentence(error, made)
        return
    # Those beyond a bag have no loops of ours, and onnxruntime is not what is tried here.
    if bundle.manifest.graph.beyond_rows is None:
        use(numbers, bundle)


def change(numbers: random.Random, made: Path) -> None:
    """One change to one file."""
    name = numbers.choice(
        [
            *["manifest.json"] * 4,
            *["vocabulary.safetensors"] * 3,
            "memo.safetensors",
            "lexical.safetensors",
            "model.onnx",
            "model.cpu.onnx",
            "model.cuda.onnx",
            "model.onnx.data",
            "odd",
        ]
    )
    file = made / name
    if name == "odd":
        odd_file(numbers, made)
    elif not file.is_file() or file.is_symlink():
        return
    elif numbers.random() < 0.2:
        file.write_bytes(mutate.content(numbers, file.read_bytes()))
    elif name == "manifest.json":
        with suppress(ValueError, RecursionError):  # it was changed before
            file.write_bytes(mutate.to_json(mutate.value(numbers, json.loads(file.read_bytes()))))
    elif name.endswith(".safetensors"):
        data = file.read_bytes()
        with suppress(ValueError, TypeError, LookupError, AttributeError, UnicodeDecodeError):  # it was changed before
            file.write_bytes(packed(data, mutate.arrays(numbers, read(data))))
    else:
        file.write_bytes(mutate.content(numbers, file.read_bytes()))


def odd_file(numbers: random.Random, made: Path) -> None:
    """A file that is something else by now."""
    file = made / numbers.choice(sorted(one.name for one in made.iterdir() if one.name != "manifest.json"))
    if file.is_dir() and not file.is_symlink():
        return
    file.unlink()
    kind = numbers.randrange(5)
    if kind == 0:
        file.mkdir()
    elif kind == 1:
        os.mkfifo(file)
    elif kind == 2:
        file.symlink_to(numbers.choice(["/dev/zero", "/dev/null", "/etc/passwd", "manifest.json", file.name, ".."]))
    elif kind == 3:
        file.touch()


def sign(made: Path) -> None:
    """Make digests right, as far as there is a manifest to hold them."""
    try:
        with manifest(made) as values:
            assert isinstance(values["files"], dict)
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError, OSError, RecursionError):
        return


def use(numbers: random.Random, bundle: Bundle) -> None:
    """What a service and a library do with a bundle: only sentences may come of it."""
    letters = "".join(map(chr, bundle.vocabulary.alphabet.tolist()))
    texts = mutate.texts(numbers, letters)
    batch = bundle.memoized(texts)
    assert np.all(batch.ids < bundle.manifest.table_rows)
    assert len(bundle.vocabulary.entries()) == bundle.manifest.rows
    try:
        runtime = NativeRuntime(bundle)
        vectors = runtime.embed(bundle.memoized, texts).vectors
        assert vectors.shape == (len(texts), bundle.manifest.dimension)
        embedder = Embedder(bundle, runtime, space="semantic" if bundle.lexical is None else "both")
        with np.errstate(all="ignore"):
            open_weights(bundle).rows(np.arange(min(5, bundle.manifest.rows)))
            explain(embedder, *[*texts, "a", "b"][:2]).to_dict()
            nearest_words(embedder, "the fox", k=2)
            nearest_ngrams(embedder, "th", k=2)
    except (BackendError, BundleError, InputError) as error:
        assert "\n" not in str(error)
    except GramvecError as error:
        raise AssertionError(error) from error
