"""Small static models in the layouts of model2vec and sentence-transformers, made without those libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.text.array_file import pack_arrays

WORDS = ["[PAD]", "[UNK]", "the", "cat", "sat", "on", "a", "mat", "##s", "##ting", "caf", "##e", ".", ",", "!", "1",
         "2", "c", "s", "##a", "##t", "\u65e5", "\u03c3", "\u03c3\u03c2", "x", "##x"]  # fmt: skip


def word_pieces() -> Any:
    """Return a small BERT tokenizer."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    made = Tokenizer(models.WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(["[PAD]", "[UNK]"])
    return made


def unigram_pieces() -> Any:
    """Return a small Unigram tokenizer that marks spaces, with added tokens."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

    pieces = [("<unk>", 0.0), *((letter, -2.0) for letter in "\u2581abcdest "), ("\u2581the", -1.0), ("at", -1.5)]
    made = Tokenizer(models.Unigram(pieces, unk_id=0))
    mark, spaces = normalizers.Replace("_", "\u2581"), normalizers.Replace(Regex(" {2,}"), " ")
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), mark, spaces])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.add_special_tokens([AddedToken("<unk>"), AddedToken("<mask>", lstrip=True), AddedToken("<pad>")])
    return made


def table(rows: int = len(WORDS), columns: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)


def write_model2vec(
    folder: Path, tokenizer: Any = None, arrays: dict[str, np.ndarray] | None = None, **config: Any
) -> Path:
    """Write model.safetensors, tokenizer.json and config.json, as model2vec's save_pretrained does."""
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(pack_arrays("test", 1, arrays or {"embeddings": table()}))
    (tokenizer or word_pieces()).save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True, **config}))
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# A model\n")
    return folder


def write_static_embedding(folder: Path, tokenizer: Any = None) -> Path:
    """Write modules.json and 0_StaticEmbedding, as sentence-transformers does."""
    inner = folder / "0_StaticEmbedding"
    inner.mkdir(parents=True)
    (inner / "model.safetensors").write_bytes(pack_arrays("test", 1, {"embedding.weight": table()}))
    (tokenizer or word_pieces()).save(str(inner / "tokenizer.json"))
    module = {"idx": 0, "name": "0", "path": inner.name, "type": "sentence_transformers.models.StaticEmbedding"}
    (folder / "modules.json").write_text(json.dumps([module]))
    return folder
