"""The columns that say which n-grams stand in a text: C against numpy, by hand, and from the library to HTTP."""

from __future__ import annotations

import math
import pickle
import random
import shutil
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec.bundle.bundle import open_bundle
from gramvec.embed.embedder import Embedder
from gramvec.errors import BundleError, InputError
from gramvec.explain.contributions import explain
from gramvec.lexical.sketch import COLUMNS, LexicalSketch
from gramvec.lexical.weights import WEIGHT_BITS, NgramWeights
from gramvec.native import loops
from gramvec.server.settings import Settings
from gramvec_training.export.adapt import add_lexical
from gramvec_training.export.convert import convert
from hostile.bundles.craft import manifest
from support.bulk import gramvec_command
from support.errors import refused
from support.http import running, until

TEXTS = [
    "canon powershot sd1100 digital camera",
    "canon powershot sx20 digital camera",
    "nikon coolpix s8100 digital camera",
    "sony bravia television",
]


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return gramvec.load()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "both"
    add_lexical("paragram-phrase", path, TEXTS, name="both")
    return path


def slow_sketch(lexical: LexicalSketch, text: str) -> list[float]:
    """One n-gram after the other, by the words of the module's docstring."""
    folded = "".join(" " if one.isspace() else one.lower()[0] for one in text)
    words = folded.split(" ")
    padded = " " + " ".join(word for word in words if word) + " "
    sums = [0] * lexical.columns
    ngrams = [padded[at : at + n] for n in lexical.orders for at in range(len(padded) - n + 1) if padded.strip() != ""]
    mask = (1 << 64) - 1
    for ngram in ngrams:
        key = 0
        for letter in ngram:
            key = (key * 0x9E3779B97F4A7C15 + ord(letter)) & mask
        x = (key + (len(ngram) + 1) * 0x9E3779B97F4A7C15) & mask
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & mask
        x ^= x >> 31
        weight = int(lexical.weights.weights[x >> 64 - WEIGHT_BITS])
        block = lexical.columns // 8
        rest = x
        for part in range(8):
            sums[part * block + rest % block] += weight if rest // block % 2 else -weight
            rest //= 2 * block
    return [one * lexical.scale / (255 * math.sqrt(8) * math.sqrt(max(1, len(ngrams)))) for one in sums]


@pytest.mark.parametrize("columns", [8, 128, 256, 1024])
@pytest.mark.parametrize("orders", [(3,), (1, 4), (2, 3, 6)])
def test_a_sketch_is_what_its_description_says(columns: int, orders: tuple[int, ...]) -> None:
    lexical = LexicalSketch.of_texts(TEXTS, orders=orders, columns=columns, scale=0.7)
    for text in [*TEXTS, "", " ", "x", "A  b\u3000ÇÉ", "СОБАКА", "日本 語", "😀😀"]:
        joined, counts = lexical.join([text], np.array([[3, 4]], np.float32))
        assert np.array_equal(joined[0, :2], [3, 4])
        assert joined[0, 2:] == pytest.approx([5 * one for one in slow_sketch(lexical, text)], rel=1e-6, abs=1e-9)
        padded = len(" ".join(text.split())) + 2
        assert counts[0] == (sum(max(0, padded - n + 1) for n in orders) if text.strip() else 0)


@pytest.mark.skipif(loops is None, reason="the loops were not built")
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=12), st.integers(0, 2**32 - 1))
def test_c_and_numpy_give_the_same_bytes(texts: list[str], seed: int) -> None:
    lexical = _lexical()
    vectors = np.random.default_rng(seed).normal(size=(len(texts), 13)).astype(np.float32)
    vectors[::3] = 0
    for fast, slow in zip(lexical.join(texts, vectors), lexical._join_in_numpy(texts, vectors), strict=True):
        assert fast.tobytes() == slow.tobytes()


def _lexical(cache: list[LexicalSketch] = []) -> LexicalSketch:  # noqa: B006 - made once
    if not cache:
        cache.append(LexicalSketch.of_texts(TEXTS, orders=(2, 3)))
    return cache[0]


def test_a_weight_is_a_over_a_plus_the_share_of_texts() -> None:
    lexical = LexicalSketch.of_texts(["ab", "ab", "ab", "cd"], orders=(2,), a=0.25)
    ngrams = lexical.ngrams("abcd")
    lengths = np.linalg.norm(ngrams.vectors, axis=1) * math.sqrt(len(ngrams.first))
    found = {
        ngrams.text[first:last]: length for first, last, length in zip(ngrams.first, ngrams.last, lengths, strict=True)
    }
    assert found["ab"] == pytest.approx(0.25 / (0.25 + 0.75), abs=1 / 255)
    assert found["cd"] == pytest.approx(0.25 / (0.25 + 0.25), abs=1 / 255)
    assert found["bc"] == 1


def test_two_codes_are_told_apart(embedder: Embedder) -> None:
    adapted = embedder.adapted(TEXTS)
    codes = ["canon sd1100"], ["canon sd1000"]
    assert adapted.similarity(*codes)[0, 0] < embedder.similarity(*codes)[0, 0]
    assert adapted.dimension == embedder.dimension + COLUMNS


def test_the_first_columns_are_what_the_model_alone_gives_to_the_bit(embedder: Embedder) -> None:
    adapted = embedder.adapted(TEXTS)
    texts = [*TEXTS, "", "xqzv\u0e01\u0e02", "a" * 3000]
    alone = embedder.embed(texts)
    assert adapted.embed(texts, space="semantic").tobytes() == alone.tobytes()
    assert adapted.embed(texts, dimensions=300).tobytes() == alone.tobytes()
    assert adapted.embed(texts, space="lexical").shape == (len(texts), COLUMNS)
    whole, raw = adapted.embed(texts), adapted.embed(texts, normalize=False)
    assert raw[:, :300].tobytes() == embedder.embed(texts, normalize=False).tobytes()
    assert np.linalg.norm(whole[0]) == pytest.approx(1)
    for index, text in enumerate(texts):  # alone as in company
        assert adapted.embed([text])[0].tobytes() == whole[index].tobytes()


def test_a_text_that_the_model_does_not_know_has_an_identity(embedder: Embedder) -> None:
    unknown = "\u0e01\u0e02\u0e03\u0e04"
    adapted = embedder.adapted(TEXTS)
    assert not embedder.embed([unknown]).any()
    assert adapted.similarity([unknown], [unknown, "canon"])[0].tolist() == [
        pytest.approx(1),
        pytest.approx(0, abs=0.3),
    ]
    assert adapted.raw([unknown, " "]).feature_counts.tolist() == [4, 0]


def test_many_texts_in_threads_are_one_by_one(embedder: Embedder) -> None:
    rng = random.Random(3)
    texts = ["".join(rng.choices("abc123 é", k=rng.randrange(60))) for _ in range(3000)]
    adapted = embedder.adapted(texts)
    assert np.array_equal(np.concatenate(list(adapted.stream(texts, batch_size=7))), adapted.embed(texts))


def test_pickled_and_opened_again(embedder: Embedder) -> None:
    adapted = embedder.adapted(TEXTS, space="lexical")
    again = pickle.loads(pickle.dumps(adapted))
    assert again.space == "lexical" and again.digest == adapted.digest != embedder.digest
    assert again.embed(TEXTS).tobytes() == adapted.embed(TEXTS).tobytes()
    assert embedder.adapted(TEXTS[:2]).digest != embedder.adapted(TEXTS).digest


@pytest.mark.parametrize("space", ["both", "lexical"])
def test_an_explanation_is_of_the_score(embedder: Embedder, space: gramvec.embed.Space) -> None:
    adapted = embedder.adapted(TEXTS, space=space)
    for left, right in [("Canon SD-1100", "canon sd1100 camera"), ("\u0e01\u0e02\u0e03", "\u0e01\u0e02 x"), ("", "a")]:
        found = explain(adapted, left, right)
        assert found.score == pytest.approx(float(adapted.similarity([left], [right])[0, 0]), abs=1e-6)
        assert abs(found.residual) < 1e-5
        assert sum(found.source.contributions) == pytest.approx(found.score - found.residual, abs=1e-6)
        assert found.source.characters.sum() == pytest.approx(found.score - found.residual, abs=1e-6) or not left
    pair = explain(adapted, "sd1100", "sd1100").pairs[0]
    assert pair.source.text == pair.target.text


def test_a_bundle_has_it_and_keeps_it(both: Path, tmp_path: Path) -> None:
    loaded = gramvec.load(both, space="both")
    assert gramvec.load(both).dimension == 300 and loaded.dimension == 300 + COLUMNS
    expected = gramvec.load("paragram-phrase").adapted(TEXTS).embed(TEXTS)
    assert loaded.embed(TEXTS).tobytes() == expected.tobytes()
    convert(both, tmp_path / "again", precision="float32")
    kept = open_bundle(tmp_path / "again").lexical
    assert kept is not None and kept.digest == open_bundle(both).lexical.digest  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("space", "sentence"),
    [("both", "space='semantic'"), ("words", r"'words'")],
)
def test_a_space_that_is_not_there(embedder: Embedder, space: gramvec.embed.Space, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        embedder.embed(["a"], space=space)
    with pytest.raises(InputError, match="has no lexical columns" if space == "both" else sentence):
        gramvec.load("sif", space=space)


def test_settings_that_cannot_be(embedder: Embedder) -> None:
    with pytest.raises(InputError, match="no texts"):
        embedder.adapted([])
    with refused(InputError, "a", "0"):
        embedder.adapted(TEXTS, a=0)
    with pytest.raises(InputError, match="text 1 is"):
        embedder.adapted(["a", 2])  # type: ignore[list-item]
    wrong = [((), 256, 1.0), ((3, 2), 256, 1.0), ((7,), 256, 1.0), ((3,), 100, 1.0), ((3,), 4, 1.0), ((3,), 2048, 1.0)]
    for orders, columns, scale in [*wrong, ((3,), 256, 0.0), ((3,), 256, math.nan)]:
        with pytest.raises(InputError, match="must"):
            LexicalSketch.of_texts(TEXTS, orders=orders, columns=columns, scale=scale)
    with refused(InputError, "text 1", "surrogate"):
        _lexical().join(["a", "\ud800"], np.zeros((2, 3), np.float32))
    with pytest.raises(InputError, match="text 0 is"):
        _lexical().join([b"a"], np.zeros((1, 3), np.float32))  # type: ignore[list-item]


@pytest.mark.skipif(loops is None, reason="the loops were not built")
def test_the_loops_take_nothing_that_does_not_fit() -> None:
    lexical = _lexical()
    with refused(ValueError, "fit"):
        lexical._loops.join(["a"], np.zeros((2, 3), np.float32), np.zeros((1, 259), np.float32), np.zeros(1, np.int64))
    with refused(ValueError, "fit"):
        lexical._loops.join(["a"], np.zeros((1, 3), np.float32), np.zeros((1, 258), np.float32), np.zeros(1, np.int64))
    with refused(ValueError, "fit"):
        loops.LexicalSketch(
            str, np.full(0x1100, 9, np.uint16), np.zeros(256, np.uint32), lexical.weights.weights, (3,), 8, 1.0
        )
    with refused(ValueError, "fit"):
        loops.LexicalSketch(
            str, np.zeros(0x1100, np.uint16), np.zeros(256, np.uint32), np.ones(9, np.uint8), (3,), 8, 1.0
        )


def opened(path: Path) -> NgramWeights:
    return NgramWeights.read(path, path.read_bytes())


class TestFile:
    def test_read_as_it_was_written(self, tmp_path: Path) -> None:
        weights, count = NgramWeights.of_texts(TEXTS, (3,))
        weights.save(tmp_path / "lexical.safetensors")
        again = opened(tmp_path / "lexical.safetensors")
        assert count == 4 and np.array_equal(again.weights, weights.weights)
        assert np.array_equal(again.letters, weights.letters)

    def test_any_byte_changed_or_missing_is_seen_or_harmless(self, tmp_path: Path) -> None:
        NgramWeights.of_texts(TEXTS, (3,))[0].save(tmp_path / "lexical.safetensors")
        data = (tmp_path / "lexical.safetensors").read_bytes()
        rng = random.Random(5)
        for _ in range(300):
            broken = bytearray(data)
            if rng.random() < 0.5:
                del broken[rng.randrange(len(broken)) :]
            else:
                broken[rng.choice([rng.randrange(200), rng.randrange(len(broken))])] = rng.randrange(256)
            try:
                found = NgramWeights.read(Path("lexical.safetensors"), bytes(broken))
            except BundleError as error:
                assert str(error).startswith("lexical.safetensors: ")
            else:
                LexicalSketch(found, (3,), 8, 1.0).join(["İstanbul ǅ"], np.zeros((1, 1), np.float32))

    @pytest.mark.parametrize(
        ("name", "array", "sentence"),
        [
            ("weights", np.ones(3, np.uint8), "weights are not 262144"),
            ("weights", np.zeros(1 << 18, np.uint8), "weights are not 262144"),
            ("letters", np.array([1, 2, 3], np.uint32), "no pairs"),
            ("letters", np.array([1, 0x110000], np.uint32), "no pairs"),
            ("letters", np.array([5, 1, 5, 2], np.uint32), "do not ascend"),
        ],
    )
    def test_arrays_that_cannot_be(self, tmp_path: Path, name: str, array: np.ndarray, sentence: str) -> None:
        weights, _ = NgramWeights.of_texts(TEXTS, (3,))
        arrays = {"weights": weights.weights, "letters": weights.letters, name: array}
        NgramWeights(arrays["weights"].copy(), arrays["letters"].copy()).save(tmp_path / "lexical.safetensors")
        with pytest.raises(BundleError, match=sentence):
            opened(tmp_path / "lexical.safetensors")

    def test_a_manifest_that_asks_for_what_cannot_be(self, both: Path, tmp_path: Path) -> None:
        for field, value, sentence in [
            ("columns", 100, "power of 2"), ("orders", [9], "orders: must ascend"), ("scale", -1, "scale"),
            ("columns", 2**40, "columns"),
        ]:  # fmt: skip
            shutil.copytree(both, tmp_path / "model", dirs_exist_ok=True)
            with manifest(tmp_path / "model") as values:
                values["lexical"][field] = value
            with pytest.raises(BundleError, match=sentence):
                open_bundle(tmp_path / "model")
        with manifest(tmp_path / "model") as values:
            values["lexical"] = {"columns": 256, "orders": [3], "scale": 1.0}
            del values["files"]["lexical.safetensors"]
        with refused(BundleError, "lexical.safetensors"):
            open_bundle(tmp_path / "model")


def test_served_for_both(both: Path) -> None:
    loaded = gramvec.load(both, space="both")
    with running(Settings(model=(str(both),), space="both")) as server, httpx.Client(base_url=server.url) as service:
        until(lambda: service.get("/ready").status_code == 200)
        assert service.get("/info").json()["models"][0]["space"] == "both"

        def embed(**fields: object) -> tuple[int, object]:
            answer = service.post("/embed", json={"inputs": ["sd1100"], **fields})
            return answer.status_code, answer.json()

        for fields, expected in [
            ({}, loaded.embed(["sd1100"])),
            ({"space": "semantic"}, loaded.embed(["sd1100"], space="semantic")),
            ({"space": "lexical"}, loaded.embed(["sd1100"], space="lexical")),
            ({"space": "lexical", "dimensions": 8}, loaded.embed(["sd1100"], space="lexical", dimensions=8)),
            ({"space": None, "normalize": False}, loaded.embed(["sd1100"], normalize=False)),
        ]:
            status, vectors = embed(**fields)
            assert status == 200 and np.array_equal(np.array(vectors, np.float32), expected)
        assert embed(space="words")[0] == 422
        assert embed(space="lexical", dimensions=257)[0] == 422
        score = service.post("/similarity", json={"inputs": {"source_sentence": "sd1100", "sentences": ["sd 1100"]}})
        assert score.json() == [pytest.approx(float(loaded.similarity(["sd1100"], ["sd 1100"])[0, 0]), abs=1e-6)]


def test_a_space_that_is_not_valid_is_refused(embedder: Embedder) -> None:
    refusal = "must be semantic, lexical or both, got 'words'"
    with pytest.raises(InputError, match=refusal):
        gramvec.load("sif", space="words")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=refusal):
        embedder.embed(["a"], space="words")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'semantic', 'lexical' or 'both'"):
        Settings(space="words")  # type: ignore[arg-type]
    done = gramvec_command("similarity", "a", "b", "--space", "words")
    assert done.returncode == 2 and "'words' is not one of 'semantic', 'lexical', 'both'" in done.stderr.decode()
