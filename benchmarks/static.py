"""Imported static models beside the libraries that they are from: the same random table of 30,522 word pieces.

Texts to vectors in this process with 1, 32 and 512 texts a call, on one thread, and requests a second beside what a
user would write: a FastAPI route over model2vec. Every round has the same texts, so the memo knows their words; the row
"without memo" is for words that were never seen. In the parity StaticEmbedding differs: it does not cut long texts, and
keeps unknown words. Beside word pieces there are Unigram pieces over Metaspace, which multilingual tokenizers have,
trained on the texts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import gramvec
from benchmarks import http
from benchmarks.measure import Setting, interleaved, rates
from benchmarks.peers import MODEL2VEC, STATIC_EMBEDDING, Floats, random_table, static_embedding, word_pieces
from benchmarks.results import Group, Part
from benchmarks.servers import Command, Server, gramvec_serve

# Rates of gramvec in float32 that a run must reach, as multiples of model2vec's, by the texts of a call.
FLOORS = {1: 5.0, 512: 3.0}
SIZES = (1, 32, 512)
OURS = "gramvec, float32"
PARITY = 1e-6
UNIGRAM_PIECES = 8_000
ROUTE = "FastAPI over model2vec"
CASES = (http.Case(1, 16), http.Case(32, 16))


def run(setting: Setting) -> Part:
    part = Part()
    try:
        from model2vec import StaticModel

        from gramvec.hub.static_models import import_static

        tokenizer = word_pieces()
        transformers = static_embedding()
    except (ImportError, StopIteration) as error:
        part.note(f"static is left out: {error}; 'make bench-peers' installs it")
        return part
    with TemporaryDirectory() as temporary:
        source, whole, small = (Path(temporary) / name for name in ("source", "float32", "int8"))
        StaticModel(random_table(tokenizer.get_vocab_size()), tokenizer, normalize=True).save_pretrained(source)
        import_static(source, whole, precision="float32")
        import_static(source, small, precision="int8")
        theirs = StaticModel.from_pretrained(source)
        with (
            closing(gramvec.load(whole, device="cpu", threads=1)) as ours,
            closing(gramvec.load(whole, device="cpu", threads=1)) as ours_cold,
            closing(gramvec.load(small, device="cpu", threads=1)) as ours_small,
        ):
            tokens: Any = ours_cold.bundle.vocabulary
            tokens.chunks = None
            embeds: dict[str, Callable[[Sequence[str]], Floats]] = {
                MODEL2VEC: lambda texts: theirs.encode(list(texts), use_multiprocessing=False),
                STATIC_EMBEDDING: transformers,
                OURS: ours.embed,
                "gramvec, int8": ours_small.embed,
                "gramvec, float32, without memo": ours_cold.embed,
            }
            part.add("static_parity", _parity(embeds, setting.texts))
            for size in SIZES:
                _in_process(part, embeds, setting, size)
        _served(part, setting, source, whole)
        _unigram(part, setting, Path(temporary))
    return part


def _unigram(part: Part, setting: Setting, folder: Path) -> None:
    """Measure one text a call and 512 with a Unigram tokenizer."""
    from model2vec import StaticModel
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    from gramvec.hub.static_models import import_static

    tokenizer: Any = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=UNIGRAM_PIECES, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(setting.texts, trainer)
    source, bundle = folder / "unigram", folder / "unigram-float32"
    StaticModel(random_table(tokenizer.get_vocab_size()), tokenizer, normalize=True).save_pretrained(source)
    import_static(source, bundle, precision="float32")
    theirs = StaticModel.from_pretrained(source)
    with (
        closing(gramvec.load(bundle, device="cpu", threads=1)) as ours,
        closing(gramvec.load(bundle, device="cpu", threads=1)) as ours_new,
    ):
        new: Any = ours_new.bundle.vocabulary

        def with_new_words(texts: Sequence[str]) -> Floats:
            new.chunks.clear()
            return ours_new.embed(texts)

        embeds: dict[str, Callable[[Sequence[str]], Floats]] = {
            MODEL2VEC: lambda texts: theirs.encode(list(texts), use_multiprocessing=False),
            OURS: ours.embed,
            "gramvec, float32, words new in each call": with_new_words,
        }
        part.add("static_unigram_parity", _parity(embeds, setting.texts))
        for size in (1, 512):
            part.add(f"static_unigram_{size}", _timed(embeds, setting, size, f"{UNIGRAM_PIECES:,} Unigram pieces, "))


def _parity(embeds: dict[str, Callable[[Sequence[str]], Floats]], texts: list[str]) -> Group:
    """Compare vectors with model2vec's on all texts, and some that are empty or long."""
    asked = [
        *texts,
        "",
        " ",
        "word " * 3_000,
        "x" * 5_000,
        "na\u00efve\u00a0caf\u00e9\u3000\u65e5\u672c\u8a9e \U0001f642",
    ]
    expected = embeds[MODEL2VEC](asked)
    rows = [
        {"name": name, "largest_difference": float(np.abs(embed(asked) - expected).max())}
        for name, embed in embeds.items()
    ]
    return Group(f"static: {len(asked):,} texts, beside model2vec's vectors", "of a number", rows)


def _timed(
    embeds: dict[str, Callable[[Sequence[str]], Floats]], setting: Setting, size: int, tokens: str = ""
) -> Group:
    texts = setting.texts[: 512 if size == 1 else None]
    blocks = [texts[start : start + size] for start in range(0, len(texts), size)]
    tasks = {name: lambda embed=embed: [embed(block) for block in blocks] for name, embed in embeds.items()}
    timings = interleaved(tasks, len(texts), setting.rounds)
    return rates(f"static: {tokens}{size} texts a call, one thread", "texts", timings, MODEL2VEC)


def _in_process(part: Part, embeds: dict[str, Callable[[Sequence[str]], Floats]], setting: Setting, size: int) -> None:
    group = _timed(embeds, setting, size)
    part.add(f"static_{size}", group)
    found, floor = next(row["ratio"] for row in group.rows if row["name"] == OURS), FLOORS.get(size, 0.0)
    if found < floor:
        part.failed.append(f"static_{size}")
        part.note(f"static: {size} texts a call at {found} times model2vec, which should be {floor}")


def _served(part: Part, setting: Setting, source: Path, bundle: Path) -> None:
    route = Command(
        ROUTE,
        lambda port: [sys.executable, "-m", "uvicorn", "benchmarks.static:application", "--factory", "--no-access-log",
                      "--log-level", "warning", "--port", str(port)],
        "/openapi.json",
        {"BENCH_STATIC": str(source)},
    )  # fmt: skip
    with Server(route) as peer, Server(gramvec_serve(str(bundle))) as served:
        for case in CASES:
            timings = http.interleaved([peer, served], case, setting)
            title = f"static: {case.unit}, {case.connections} connections"
            part.add(f"static_http_{case.name}", rates(title, case.unit, timings, ROUTE))


def application() -> Any:
    """Return what a user would write in ten lines: FastAPI, a route, model2vec."""
    from fastapi import Body, FastAPI
    from model2vec import StaticModel

    model, app = StaticModel.from_pretrained(os.environ["BENCH_STATIC"]), FastAPI()

    # In threads model2vec's encode fails now and then: each call sets how long the tokenizer's texts may be.
    @app.post("/embed")
    async def embed(inputs: str | list[str] = Body(embed=True)) -> list[list[float]]:
        found: list[list[float]] = model.encode([inputs] if isinstance(inputs, str) else inputs).tolist()
        return found

    return app
