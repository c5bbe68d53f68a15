"""Precisions other than float32: sentence-transformers' meanings, worked by hand and over HTTP in every form."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gramvec import Embedder
from gramvec.embed.vectors import check_precision, quantize, unit
from gramvec.errors import InputError
from gramvec.server.settings import Settings
from support.errors import refused
from support.http import asking

DTYPES = {"float32": "float32", "int8": "int8", "uint8": "uint8", "binary": "int8", "ubinary": "uint8"}
PRECISIONS = list(DTYPES)
TEXTS = ["one", "", "three \N{GRINNING FACE}", "vehicals"]


def test_worked_by_hand() -> None:
    vectors = np.array([[0, 0.6, -0.8, 1.0, -1.0, 0.001, 0.9961, -0.0, 0.5, -0.5]], np.float32)
    assert quantize(vectors, "int8").tolist() == [[0, 76, -102, 127, -127, 0, 127, 0, 64, -64]]
    assert quantize(vectors, "uint8").tolist() == [[128, 204, 26, 255, 1, 128, 255, 128, 192, 64]]
    assert quantize(vectors, "ubinary").tolist() == [[0b01010110, 0b10000000]]
    assert quantize(vectors, "binary").tolist() == [[0b01010110 - 128, 0b10000000 - 128]]
    assert quantize(vectors, None) is vectors
    assert quantize(vectors, "float32") is vectors


units = arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 40)), elements=st.floats(-1, 1, width=32))


@given(units)
@example(np.full((1, 1), 1.5628334e-22, np.float32))
def test_it_is_what_sentence_transformers_does_with_these_ranges(values: Any) -> None:
    vectors = unit(values)
    assert [quantize(vectors, one).dtype.name for one in PRECISIONS] == list(DTYPES.values())  # type: ignore[arg-type]
    # Its formula: floor((x - start) / step), of 256 steps between start and end. A tie may be rounded to either side.
    step = 1 / 127
    buckets = np.clip(np.floor((vectors.astype(np.float64) + 128.5 * step) / step), 0, 255)
    found = quantize(vectors, "uint8").astype(np.float64)
    ties = np.abs(vectors.astype(np.float64) / step % 1 - 0.5) < 1e-3
    assert (found == buckets)[~ties].all()
    assert (np.abs(found - buckets) <= 1).all()
    assert (quantize(vectors, "int8").astype(int) + 128 == found).all()
    assert (quantize(vectors, "binary") == (np.packbits(vectors > 0, axis=-1) - 128).astype(np.int8)).all()
    assert (quantize(vectors, "ubinary") == np.packbits(vectors > 0, axis=-1)).all()


def test_it_is_what_sentence_transformers_does_where_that_is_installed(
    embedder: Embedder, real_texts: list[str]
) -> None:
    quantization = pytest.importorskip("sentence_transformers.util.quantization", reason="needs the group `bench`")
    vectors = embedder.embed(real_texts)
    ranges = np.array([[-128.5 / 127] * embedder.dimension, [126.5 / 127] * embedder.dimension])
    for precision in PRECISIONS:
        theirs = quantization.quantize_embeddings(vectors, precision, ranges=ranges)
        ours = quantize(vectors, precision)  # type: ignore[arg-type]
        assert ours.dtype == theirs.dtype
        assert (ours == theirs).mean() > 0.9999  # ties are rounded in float32


def test_unnormalized_vectors_have_signs_but_no_range() -> None:
    for precision in ("int8", "uint8"):
        with refused(InputError, "normalize"):
            check_precision(precision, normalize=False)  # type: ignore[arg-type]
        check_precision(precision, normalize=True)  # type: ignore[arg-type]
    for precision in ("float32", "binary", "ubinary", None):
        check_precision(precision, normalize=False)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def client(embedder: Embedder) -> Iterator[httpx.Client]:
    with asking(Settings(), embedder) as opened:
        yield opened


@pytest.mark.parametrize("precision", [*PRECISIONS, None])
@pytest.mark.parametrize("fields", [{}, {"dimensions": 19}, {"dimensions": 300}])
def test_every_form_has_the_same_numbers(
    client: httpx.Client, embedder: Embedder, precision: Any, fields: dict[str, Any]
) -> None:
    expected = quantize(embedder.embed(TEXTS, dimensions=fields.get("dimensions")), precision)
    columns = fields.get("dimensions", embedder.dimension)
    if precision in ("binary", "ubinary"):
        columns = -(-columns // 8)
    assert expected.shape == (len(TEXTS), columns)
    body = {"inputs": TEXTS, "precision": precision, **fields}
    forms = ["application/json", "application/octet-stream", "application/x-npy", "application/json; encoding=base64"]
    plain, raw, npy, in_base64 = (client.post("/embed", json=body, headers={"accept": form}) for form in forms)
    assert np.array(plain.json(), expected.dtype).tobytes() == expected.tobytes()
    if expected.dtype != np.float32:
        assert all(type(number) is int for row in plain.json() for number in row)
    assert raw.content == expected.tobytes()
    loaded = np.load(io.BytesIO(npy.content), allow_pickle=False)
    assert (loaded.dtype.name, loaded.tobytes()) == (expected.dtype.name, expected.tobytes())
    assert b"".join(base64.b64decode(row, validate=True) for row in in_base64.json()) == expected.tobytes()
    for answer in (raw, npy, in_base64):
        assert answer.headers["x-shape"] == f"{len(TEXTS)},{columns}"
        assert answer.headers["x-dtype"] == DTYPES[precision or "float32"]


def test_the_same_bytes_alone_and_in_pieces(client: httpx.Client) -> None:
    texts = [f"text number {number}" for number in range(700)]
    raw = {"accept": "application/octet-stream"}
    for precision in PRECISIONS:
        together = client.post("/embed", json={"inputs": texts, "precision": precision}, headers=raw)
        size = len(together.content) // len(texts)
        for place in (0, 350, 699):
            alone = client.post("/embed", json={"inputs": texts[place], "precision": precision}, headers=raw)
            assert alone.content == together.content[place * size : (place + 1) * size]


def test_signs_do_not_need_a_length(client: httpx.Client, embedder: Embedder) -> None:
    body = {"inputs": ["one"], "precision": "binary", "normalize": False}
    assert client.post("/embed", json=body).json() == quantize(embedder.embed(["one"]), "binary").tolist()
