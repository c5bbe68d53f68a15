"""Sound bundles of many shapes, and ways to change them that come nearer to what is read than random bytes do."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.lexical.sketch import LexicalSketch
from gramvec.text.memo import cut_edges, longest_reach
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.encoders.bag import make_bag
from gramvec_training.export.bundle import ChosenChunks, export_bundle

LONGEST_SENTENCE = 1_500

CORPUS = [
    "the quick brown fox, the lazy dog", "a b a b c", "don't stop 3.14% (e.g.) #1!", "caf\u00e9 na\u00efve stra\u00dfe",
    "\u65e5\u672c\u8a9e \U0001f642\U0001f642", "aaaa aaa aa a", "the fox the dog", "\u03a3\u03bf\u03c6", "x" * 20,
]  # fmt: skip
SPECS = {
    "two": FeatureSpec(orders=(2,)),
    "three": FeatureSpec(orders=(3,)),
    "ngrams": FeatureSpec(orders=(2, 3, 4)),
    "one to three": FeatureSpec(orders=(1, 2, 3)),
    "both": FeatureSpec(orders=(2, 3, 4, 5), words=True),
    "six": FeatureSpec(orders=(2, 6), words=True, unknown_words="row"),
    "words": FeatureSpec(orders=(), words=True, unknown_words="row"),
    "cased": FeatureSpec(orders=(2, 3), words=True, lowercase=False),
    # Of two letters, but all that can be made of them: every search finds something, and every place has a row.
    "dense two": FeatureSpec(orders=(2,)),
    "dense three": FeatureSpec(orders=(3,)),
    "dense both": FeatureSpec(orders=(2, 3, 4), words=True),
}
LETTERS = "ab"
WIDTH = 5


def check_sentence(error: Exception, path: Path | None = None) -> None:
    """Assert that an error's message is one short printable line, which names the file where one is given."""
    said = str(error)
    assert "\n" not in said, said
    assert len(said) < LONGEST_SENTENCE, len(said)
    assert said.isprintable(), repr(said)
    assert path is None or str(path) in said, said


def write_bases(folder: Path) -> None:
    """A bundle of each kind, with a memo where there may be one, half with lexical columns; nothing if it is there."""
    if folder.exists():
        return
    numbers = np.random.default_rng(1)
    precisions = ("float32", "int4", "float16", "int8")
    for index, (name, spec) in enumerate(SPECS.items()):
        corpus = CORPUS if not name.startswith("dense") else all_of_letters(6)
        vocabulary = build_vocabulary(corpus, spec)
        known = {character for entry in vocabulary.entries() for character in entry.text}
        reach = longest_reach(spec.orders, vocabulary.bits)
        chunks = sorted({one for text in corpus for one in text.split() if known.issuperset(one)})[::2]
        edges = sorted({one for text in corpus for one in cut_edges(f" {text} ", reach)}) if reach else []
        has_memo = bool(spec.orders) and spec.orders[0] > 1
        memo = (chunks, [one for one in edges if known.issuperset(one)][::2]) if has_memo else ()
        export_bundle(
            folder / name, name=name, kind="test", spec=spec, vocabulary=vocabulary, golden_texts=corpus[:2],
            encoder=make_bag(
                numbers.normal(0, 0.3, (len(vocabulary), WIDTH)).astype(np.float32),
                None, pooling="sum" if has_memo else "mean", activation="linear",
            ), precision=precisions[index % 4],  # type: ignore[arg-type]
            lexical=LexicalSketch.of_texts(corpus, orders=(2, 3), columns=16) if index % 2 else None,
            memo=ChosenChunks(*memo),
            provenance={"seed": 1, "data": [{"name": "none"}]}, card="# test\n",
        )  # fmt: skip
        assert Featurizer(spec, vocabulary)(["a"]).counts[0] >= 0


def all_of_letters(length: int) -> list[str]:
    """Every text of so many of the letters, and single spaces between."""
    return ["".join(one) for one in product(LETTERS + " ", repeat=length) if "  " not in "".join(one)]


def texts(numbers: random.Random, vocabulary_letters: str) -> list[str]:
    """Some texts, mostly of what a vocabulary knows, of lengths at which something in the loops ends."""
    few = vocabulary_letters.strip() == LETTERS and numbers.random() < 0.8
    letters = LETTERS + " " if few else (vocabulary_letters or "a") + " " * 4 + "\t\u3000\u00e9\U0001f642zq\x00"

    def one() -> str:
        kind = numbers.randrange(12)
        if kind == 0:
            return "".join(numbers.choice(letters) for _ in range(numbers.choice([1010, 1012, 1013, 1014, 1015, 1025])))
        if kind == 1:
            return numbers.choice(letters) * numbers.choice([0, 1, 2, 7, 8, 9, 510, 513, 2_050])
        if kind == 2:
            return f"{numbers.choice(letters)} " * numbers.randrange(600)
        if kind == 3:
            return numbers.choice(CORPUS) + numbers.choice(["", " ", numbers.choice(CORPUS), "e\u0301\u0323"])
        if kind == 4 and numbers.random() < 0.02:
            return numbers.choice(letters) * 70_000
        return "".join(numbers.choice(letters) for _ in range(numbers.choice([0, 1, 2, 3, 5, 10, 30, 100])))

    return [one() for _ in range(numbers.choice([0, 1, 1, 2, 5, 17]))]


def number(numbers: random.Random) -> int:
    """A whole number at which something may go wrong."""
    edge = 1 << numbers.choice([0, 1, 4, 7, 8, 15, 16, 20, 21, 31, 32, 53, 61, 62, 63, 64])
    return numbers.choice([0, 1, 2, 3, 5, edge, edge - 1, edge + 1, -edge, -edge - 1, numbers.randrange(1 << 64), -1])


def array(numbers: random.Random, given: NDArray[Any]) -> NDArray[Any]:
    """A like array in which something was changed."""
    found = given.copy()
    kind = numbers.randrange(9)
    n = len(found)
    if kind == 0 or n == 0:
        return np.append(found, _value(numbers, found)).astype(found.dtype)
    if kind == 1:
        return found[: numbers.randrange(n)]
    if kind == 2:
        return found[:0]
    place, other = numbers.randrange(n), numbers.randrange(n)
    if kind == 3:
        found[place], found[other] = found[other], found[place]
    elif kind == 4:
        found[place] = found[other]
    elif kind == 5:
        found[place : place + numbers.choice([1, 2, 8])] = _value(numbers, found)
    elif kind == 6:
        step = found.dtype.type(1)
        with np.errstate(over="ignore"):
            found[place] = found[place] + step if numbers.random() < 0.5 else found[place] - step
    elif kind == 7:
        return np.insert(found, place, found[other])
    else:
        found[place] = _value(numbers, found)
    return found


def _value(numbers: random.Random, like: NDArray[Any]) -> Any:
    bits = like.dtype.itemsize * 8
    return np.array([number(numbers) % (1 << bits)], np.uint64).astype(like.dtype)[0]


def arrays(numbers: random.Random, given: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of a file, with one to three changes; one in ten times two keep their lengths together."""
    found = dict(given)
    for _ in range(numbers.choice([1, 1, 1, 2, 3])):
        name = numbers.choice(sorted(found))
        found[name] = array(numbers, found[name])
    return found


JUNK: list[Callable[[random.Random], Any]] = [
    number,
    lambda _: None,
    lambda numbers: numbers.random() < 0.5,
    lambda _: 1e308,
    lambda _: -0.5,
    lambda _: "",
    lambda _: "../../etc/passwd",
    lambda _: "\x00\n\u202e\U0001f642",
    lambda numbers: "x" * numbers.choice([10, 300, 70_000]),
    lambda _: [],
    lambda _: {},
    lambda _: [[], {}, None, 1],
    lambda _: {"a": 1, "": []},
    lambda _: "vocabulary.safetensors",
    lambda _: "model.onnx.data",
]


def value(numbers: random.Random, given: Any) -> Any:
    """JSON with one change somewhere inside."""
    found = copy.deepcopy(given)
    inner, parents = found, []
    while isinstance(inner, dict | list) and inner and numbers.random() < 0.85:
        key = numbers.choice(sorted(inner)) if isinstance(inner, dict) else numbers.randrange(len(inner))
        parents.append((inner, key))
        inner = inner[key]
    if not parents:
        return found
    holder, key = parents[-1]
    kind = numbers.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[numbers.choice(["x", "", "\n", "../x", "rows", "a" * 500])] = inner
    elif kind == 2 and isinstance(holder, list):
        holder[:] = holder * numbers.choice([2, 100])
    elif kind == 3 and isinstance(inner, int | float) and not isinstance(inner, bool):
        holder[key] = inner + numbers.choice([1, -1, 4, 64, 2**20])
    else:
        holder[key] = numbers.choice(JUNK)(numbers)
    return found


def content(numbers: random.Random, given: bytes) -> bytes:
    """Bytes with a few changed, cut off, doubled, or put in."""
    data = bytearray(given)
    for _ in range(numbers.choice([1, 1, 2, 8])):
        place = numbers.randrange(len(data) + 1)
        kind = numbers.randrange(6)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << numbers.randrange(8)
        elif kind == 1:
            del data[place : place + numbers.choice([1, 2, 8, 10_000])]
        elif kind == 2:
            data[place:place] = bytes(numbers.choice([0, 0xFF, 0x80, 0x7F]) for _ in range(numbers.choice([1, 4, 12])))
        elif kind == 3:
            data[place:place] = data[place : place + numbers.choice([4, 40, 400])]
        elif kind == 4:
            data[place : place + 8] = (number(numbers) % (1 << 64)).to_bytes(8, "little")
        elif place < len(data):
            data[place] = numbers.randrange(256)
    return bytes(data)


def to_json(values: Any) -> bytes:
    """As a manifest is written, for whatever JSON can hold."""
    return json.dumps(values).encode("utf-8", "surrogatepass")
