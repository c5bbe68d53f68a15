"""Static embedding models of model2vec and sentence-transformers, written as bundles: `gramvec import`.

A model is a table with a row for each token of a tokenizer; a text's vector is the mean of its tokens' rows. Token
weights and mappings of model2vec are folded into the table.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import stat
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gramvec.bundle.bundle import (
    GRAPH,
    TOKENIZER,
    Golden,
    Manifest,
    Precision,
    check_target,
    staged_folder,
    write_manifest,
)
from gramvec.embed.loading import load
from gramvec.errors import BundleError, quoted
from gramvec.features.tokens import MOST_BYTES, TokenFeaturizer, TokenSpec, TokenVocabulary, json_of
from gramvec.runtime.onnx_graph import write_graph
from gramvec.runtime.ort import OnnxRuntime
from gramvec.text.array_file import ArrayFile, read_tensors
from gramvec.text.arrays import Floats

MOST_SETTINGS_BYTES, MOST_TABLE_BYTES = 2**20, 16 * 2**30
MOST_DIMENSION, MOST_TOKENS, DEFAULT_MAX_TOKENS = 8_192, 2**24, 512
MOST_LOSS = 1e-3  # of a golden text's cosine with its float32 vector, for int8 by default
TABLE = "model.safetensors"
SETTINGS_FILES = ("config.json", "modules.json", "config_sentence_transformers.json", "README.md")
REMEDY = "give a folder of model2vec, or of sentence-transformers with a StaticEmbedding"
TEXTS = (
    "vehicles", "a man is playing the guitar", "Where can I buy a second-hand bicycle?", "", "x", "zzzzqqq",
    "the talks were broken off on Tuesday, two officials said", "don't stop, (e.g.) 3.14% of #1!!",
    "\t many \n\n kinds\u00a0of\u3000space ", "CAF\u00c9 na\u00efve e\u0301te\u0301 Stra\u00dfe \u0130stanbul",
    "\u03a3\u03bf\u03c6\u03cc\u03c2 \u041c\u043e\u0441\u043a\u0432\u0430 \u0645\u062f\u064a\u0646\u0629",
    "\u65e5\u672c\u8a9e \U0001f642\U0001f642 emoji", "again and again " * 400,
)  # fmt: skip

_license = re.compile(rb"^license:\s*([\w.+-]{1,40})\s*$", re.MULTILINE)


class Imported(NamedTuple):
    """An imported model: its manifest, and the largest 1 - cosine of a golden text that the stored precision costs."""

    manifest: Manifest
    loss: float


class _Source(NamedTuple):
    """A model's parts: the tokenizer, the table float32[tokens, d], its file's SHA-256, and the longest text."""

    format: str
    vocabulary: TokenVocabulary
    tokenizer: bytes
    table: Floats
    digest: str
    max_tokens: int | None


def import_static(
    source: Path,
    path: Path,
    *,
    name: str | None = None,
    precision: Precision | None = None,
    overwrite: bool = False,
    origin: str | None = None,
) -> Imported:
    """Write the static model in the folder `source` as a bundle to the folder `path`, whole or not at all.

    Args:
        source: folder of model2vec (config.json, model.safetensors, tokenizer.json) or of sentence-transformers
            (modules.json with a StaticEmbedding).
        path: the bundle's folder.
        name: of the model; None for the folder's.
        precision: of the table; None for int8, or float16 where int8 costs a golden text more than 1e-3 of cosine.
        overwrite: replace a bundle in the folder.
        origin: of the model, for its card; None for the name of the folder `source`.

    Raises:
        BundleError: the folder is not a static model, or a file of it is damaged or not served.
        InputError: the destination is in use.
    """
    check_target(path, overwrite=overwrite)
    name, found = name or path.name, _read(source)
    table, license_name = found.table, _license_of(source)
    featurizer = TokenFeaturizer(_spec(found), found.vocabulary)
    batch = featurizer(TEXTS)
    ids = np.split(batch.ids, batch.offsets[1:-1])
    expected = np.array([table[rows].mean(axis=0) if len(rows) else 0 * table[0] for rows in ids])
    with staged_folder(path) as folder:
        (folder / TOKENIZER).write_bytes(found.tokenizer)
        for chosen in ("int8", "float16") if precision is None else (precision,):
            graph = write_graph(folder, table=table, bias=None, pooling="mean", activation="linear", precision=chosen)
            with closing(OnnxRuntime(folder / GRAPH, table.shape[1])) as runtime:
                vectors = runtime.run(batch)
            loss = _largest_distance(vectors, expected)
            if loss <= MOST_LOSS:
                break
        (folder / "README.md").write_text(
            f"# {name}\n\nA static embedding model, imported from `{origin or source.name}`.\n"
            f"License of the source: {license_name}.\n",
            encoding="utf-8",
        )
        manifest = write_manifest(
            folder,
            name=name,
            kind="static",
            dimension=table.shape[1],
            spec=featurizer.spec,
            vocabulary=found.vocabulary,
            lexical=None,
            graph=graph,
            golden=[
                Golden(text=text, ids=rows.tolist(), vector=vector.tolist())
                for text, rows, vector in zip(TEXTS, ids, vectors, strict=True)
            ],
            provenance={
                "license": license_name,
                "imported": {"format": found.format, "from": origin or source.name, "table_sha256": found.digest},
                "parity": {"texts": len(TEXTS), "stored_vs_float32": loss},
            },
        )
        load(folder, device="cpu").close()
    return Imported(manifest, loss)


def _read(source: Path) -> _Source:
    """Return the parts of a model's folder, each checked. Raises BundleError."""
    settings, inner = settings_of(source)
    is_model2vec, folder = settings is not None, source / inner
    settings = settings or {}
    tokenizer = bytes(_mapped(folder / TOKENIZER, MOST_BYTES))
    data = _mapped(folder / TABLE, MOST_TABLE_BYTES)
    table = _table(folder / TABLE, read_tensors(folder / TABLE, data, remedy=REMEDY))
    vocabulary = TokenVocabulary(folder / TOKENIZER, tokenizer, len(table))
    longest = settings.get("max_length", DEFAULT_MAX_TOKENS) if is_model2vec else vocabulary.longest
    if longest is not None and (type(longest) is not int or not 1 <= longest <= MOST_TOKENS):
        raise BundleError(f"{folder}: a text has {quoted(longest)} tokens, which is not a number from 1")
    format_name = "model2vec" if is_model2vec else "sentence-transformers"
    return _Source(format_name, vocabulary, tokenizer, table, hashlib.sha256(data).hexdigest(), longest)


def settings_of(source: Path) -> tuple[dict[str, Any] | None, str]:
    """Return the config of a model2vec model, None for another, and the folder of the tokenizer and the table.

    Raises:
        BundleError: SETTINGS_FILES are not those of a static model.
    """
    # model2vec writes a modules.json as well, beside its own config.json.
    if (source / "modules.json").is_file() and not (source / "config.json").is_file():
        return None, _static_module(source / "modules.json")
    settings: dict[str, Any] = _json(source / "config.json", dict)
    if settings.get("model_type", "model2vec") != "model2vec":
        raise BundleError(f"{source / 'config.json'}: a model of the type {quoted(settings['model_type'])}; {REMEDY}")
    return settings, ""


def _spec(found: _Source) -> TokenSpec:
    """Return how texts are cut: model2vec cuts characters, too, and leaves unknown words out."""
    if found.format != "model2vec":
        return TokenSpec(max_tokens=found.max_tokens)
    tokenizer = found.vocabulary.tokenizer
    median = int(np.median([len(token) for token in tokenizer.get_vocab()]))
    token = getattr(tokenizer.model, "unk_token", None)
    unknown = json.loads(tokenizer.to_str())["model"].get("unk_id") if token is None else tokenizer.token_to_id(token)
    longest = None if found.max_tokens is None else found.max_tokens * median
    return TokenSpec(max_characters=longest, max_tokens=found.max_tokens, dropped=unknown)


def _static_module(path: Path) -> str:
    """Return the folder of the StaticEmbedding in a modules.json; only unit length may follow it."""
    modules = _json(path, list)
    kinds = [str(one.get("type", "")).rpartition(".")[2] if isinstance(one, dict) else "" for one in modules]
    if kinds not in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"]):
        raise BundleError(f"{path}: not a StaticEmbedding, and Normalize after it; {REMEDY}")
    folder = modules[0].get("path", "")
    if not isinstance(folder, str) or not re.fullmatch(r"[\w.-]{0,100}", folder) or folder.startswith(".."):
        raise BundleError(f"{path}: {quoted(folder)} is not a folder in it")
    settings = path.with_name("config_sentence_transformers.json")
    if settings.is_file() and _json(settings, dict).get("default_prompt_name") is not None:
        raise BundleError(f"{settings}: the model puts a prompt before each text, which is not served")
    return folder


def _table(path: Path, found: ArrayFile) -> Floats:
    """Return a row for each token: the row that `mapping` gives it, times its weight."""
    name = "embeddings" if "embeddings" in found.arrays else "embedding.weight"
    if name not in found.arrays:
        raise BundleError(f"{path}: it has neither embeddings nor embedding.weight; {REMEDY}")
    table, mapping = _floats(path, name, found), found.arrays.get("mapping")
    if table.ndim != 2 or not len(table) or not 1 <= table.shape[1] <= MOST_DIMENSION:
        raise BundleError(f"{path}: {name} are not rows of 1 to {MOST_DIMENSION} numbers")
    if mapping is not None:
        if mapping.ndim != 1 or mapping.dtype.kind not in "iu" or not 0 < len(mapping) <= MOST_TOKENS:
            raise BundleError(f"{path}: mapping is not a list of rows for at most {MOST_TOKENS} tokens")
        if mapping.min() < 0 or mapping.max() >= len(table):
            raise BundleError(f"{path}: mapping names a row that is not among the {len(table)} of the table")
        if len(mapping) * table.shape[1] * 4 > MOST_TABLE_BYTES:
            raise BundleError(f"{path}: mapping makes a table of over {MOST_TABLE_BYTES} bytes")
        table = table[mapping.astype(np.int64)]
    if "weights" in found.arrays:
        weights = _floats(path, "weights", found)
        if weights.shape != (len(table),):
            raise BundleError(f"{path}: weights are not one for each of {len(table)} tokens")
        table = table * weights[:, None]
    if not np.isfinite(table).all():
        raise BundleError(f"{path}: {name} hold NaN or infinity")
    return np.ascontiguousarray(table)


def _floats(path: Path, name: str, found: ArrayFile) -> Floats:
    array, dtype = found.arrays[name], found.dtypes[name]
    if dtype == "BF16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    if dtype not in ("F16", "F32", "F64", "I8"):
        raise BundleError(f"{path}: {name} are of the type {quoted(dtype)}, and not floats")
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _json(path: Path, kind: type) -> Any:
    found = json_of(path, bytes(_mapped(path, MOST_SETTINGS_BYTES)))
    if not isinstance(found, kind):
        raise BundleError(f"{path}: not a JSON {kind.__name__}; {REMEDY}")
    return found


def _mapped(path: Path, most: int) -> memoryview:
    """Return the bytes of a regular file of at most `most`. Raises BundleError."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror}); {REMEDY}") from error
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or not 0 < found.st_size <= most:
            raise BundleError(f"{path}: not a file of 1 to {most} bytes; {REMEDY}")
        return memoryview(mmap.mmap(file, found.st_size, access=mmap.ACCESS_READ))
    finally:
        os.close(file)


def _largest_distance(found: Floats, expected: Floats) -> float:
    a, b = found.astype(np.float64), expected.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    known = lengths > 0
    return max(0.0, float((1 - np.einsum("ij,ij->i", a, b)[known] / lengths[known]).max(initial=0.0)))


def _license_of(source: Path) -> str:
    """Return the license in the metadata of the source's card."""
    if not (source / "README.md").is_file():
        return "not stated"
    found = _license.search(bytes(_mapped(source / "README.md", MOST_SETTINGS_BYTES)[:65_536]))
    return found[1].decode() if found else "not stated"
