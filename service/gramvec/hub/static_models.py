"""Static embedding models of model2vec and sentence-transformers, written as bundles: `gramvec import`.

A model is a table with a row for each token of a tokenizer; a text's vector is the mean of its tokens' rows. Token
weights and mappings of model2vec are folded into the table.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.bundle.bundle import (
    GOLDEN_TEXTS,
    GRAPH,
    TOKENIZER,
    Manifest,
    Precision,
    check_target,
    make_golden,
    stage_folder,
    write_manifest,
)
from gramvec.bundle.verified_files import MAX_BYTES_IN_MEMORY, Folder, open_folder
from gramvec.embed.loading import load
from gramvec.embed.vectors import unit
from gramvec.errors import BundleError, quote
from gramvec.features.tokens import TokenFeaturizer, TokenSpec, TokenVocabulary
from gramvec.runtime.onnx_graph import write_graph
from gramvec.runtime.ort import OnnxRuntime
from gramvec.text.array_file import ArrayFile, read_tensors
from gramvec.text.arrays import Floats
from gramvec.text.json_bounds import parse

MAX_SETTINGS_BYTES, MAX_TABLE_BYTES = 2**20, 16 * 2**30
MAX_DIMENSION, MAX_TOKENS, DEFAULT_MAX_TOKENS = 8_192, 2**24, 512
MAX_LOSS = 1e-3  # of a golden text's cosine with its float32 vector, for int8 by default
CONFIG, MODULES, PROMPTS, CARD = "config.json", "modules.json", "config_sentence_transformers.json", "README.md"
SETTINGS_FILES = (CONFIG, MODULES, PROMPTS, CARD)
TABLE = "model.safetensors"
REMEDY = "give a folder of model2vec, or of sentence-transformers with a StaticEmbedding"

_license = re.compile(rb"^license:\s*([\w.+-]{1,40})\s*$", re.MULTILINE)


def import_static(
    source: Path,
    path: Path,
    *,
    name: str | None = None,
    precision: Precision | None = None,
    overwrite: bool = False,
    origin: str | None = None,
) -> tuple[Manifest, str]:
    """Write the static model in the folder `source` as a bundle to the folder `path`, whole or not at all.

    Args:
        source: folder of model2vec (config.json, model.safetensors, tokenizer.json) or of sentence-transformers
            (modules.json with a StaticEmbedding).
        path: the bundle's folder.
        name: of the model; None for the folder's.
        precision: of the table; None for int8, or float16 where int8 costs a golden text more than 1e-3 of cosine.
        overwrite: replace a bundle in the folder.
        origin: of the model, for its card; None for the name of the folder `source`.

    Returns:
        The manifest, and its digest. `provenance["parity"]` has the largest 1 - cosine of a golden text that the
        stored precision costs.

    Raises:
        BundleError: the folder is not a static model, or a file of it is damaged or not served.
        InputError: the destination is in use.
    """
    check_target(path, overwrite=overwrite)
    with open_folder(source, REMEDY) as source_folder:
        settings, inner = read_settings(source_folder)
        tokenizer = bytes(source_folder.map_extra(inner + TOKENIZER, MAX_BYTES_IN_MEMORY[TOKENIZER]))
        data = source_folder.map_extra(inner + TABLE, MAX_TABLE_BYTES)
        card = bytes(source_folder.map_extra(CARD, MAX_SETTINGS_BYTES)) if (source / CARD).is_file() else b""
    table = _table(source / inner / TABLE, read_tensors(source / inner / TABLE, data, remedy=REMEDY))
    vocabulary = TokenVocabulary(source / inner / TOKENIZER, tokenizer, len(table))
    featurizer = TokenFeaturizer(_spec(source, settings, vocabulary), vocabulary)
    license_match, name, origin = _license.search(card), name or path.name, origin or source.name
    license_name = "not stated" if license_match is None else license_match[1].decode()
    with stage_folder(path) as folder:
        (folder / TOKENIZER).write_bytes(tokenizer)
        for chosen in ("int8", "float16") if precision is None else (precision,):
            graph = write_graph(folder, table=table, bias=None, pooling="mean", activation="linear", precision=chosen)
            with closing(OnnxRuntime(folder / GRAPH, table.shape[1])) as runtime:
                golden = make_golden(runtime.run, featurizer, featurizer, (*GOLDEN_TEXTS, "again and again " * 400))
            exact = np.array([table[np.array(text.ids, int)].sum(axis=0) for text in golden])
            cosines = np.sum(unit(exact) * unit(np.array([text.vector for text in golden], np.float32)), axis=1)
            if (loss := max(0.0, 1 - float(cosines[exact.any(axis=1)].min(initial=1)))) <= MAX_LOSS:
                break
        (folder / CARD).write_text(
            f"# {name}\n\nA static embedding model, imported from `{origin}`.\n"
            f"License of the source: {license_name}.\n",
            encoding="utf-8",
        )
        layout = "sentence-transformers" if settings is None else "model2vec"
        manifest = write_manifest(
            folder,
            name=name,
            kind="static",
            dimension=table.shape[1],
            spec=featurizer.spec,
            vocabulary=vocabulary,
            graph=graph,
            golden=golden,
            provenance={
                "license": license_name,
                "imported": {"from": origin, "format": layout, "table_sha256": hashlib.sha256(data).hexdigest()},
                "parity": {"texts": len(golden), "stored_vs_float32": loss},
            },
        )
        with closing(load(folder, device="cpu")) as opened:
            return manifest, opened.digest


def _spec(source: Path, settings: dict[str, Any] | None, vocabulary: TokenVocabulary) -> TokenSpec:
    longest = vocabulary.longest if settings is None else settings.get("max_length", DEFAULT_MAX_TOKENS)
    if longest is not None and (type(longest) is not int or not 1 <= longest <= MAX_TOKENS):
        raise BundleError(f"{source}: a text has {quote(longest)} tokens, which is not a number from 1")
    if settings is None:
        return TokenSpec(max_tokens=longest)
    # model2vec cuts characters, too, and leaves unknown tokens out.
    median = int(np.median([len(token) for token in vocabulary.tokens]))
    characters = None if longest is None else longest * median
    return TokenSpec(max_tokens=longest, max_characters=characters, dropped=vocabulary.unknown)


def read_settings(folder: Folder) -> tuple[dict[str, Any] | None, str]:
    """Return the config of a model2vec model, None for another, and what is before its tokenizer's and table's names.

    Raises:
        BundleError: SETTINGS_FILES are not those of a static model.
    """
    # model2vec writes a modules.json as well, beside its own config.json.
    if (folder.path / MODULES).is_file() and not (folder.path / CONFIG).is_file():
        return None, _static_module(folder)
    settings: dict[str, Any] = _json(folder, CONFIG, dict)
    if settings.get("model_type", "model2vec") != "model2vec":
        raise BundleError(f"{folder.path / CONFIG}: a model of the type {quote(settings['model_type'])}; {REMEDY}")
    return settings, ""


def _static_module(folder: Folder) -> str:
    """Return the folder of the StaticEmbedding in modules.json, with a slash; only unit length may follow it."""
    path, modules = folder.path / MODULES, _json(folder, MODULES, list)
    kinds = [str(module.get("type", "")).rpartition(".")[2] if isinstance(module, dict) else "" for module in modules]
    if kinds not in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"]):
        raise BundleError(f"{path}: not a StaticEmbedding, and Normalize after it; {REMEDY}")
    inner = modules[0].get("path", "")
    if not isinstance(inner, str) or not re.fullmatch(r"[\w.-]{0,100}", inner) or inner.startswith(".."):
        raise BundleError(f"{path}: {quote(inner)} is not a folder in it")
    if (folder.path / PROMPTS).is_file() and _json(folder, PROMPTS, dict).get("default_prompt_name") is not None:
        raise BundleError(f"{folder.path / PROMPTS}: the model puts a prompt before each text, which is not served")
    return inner and f"{inner}/"


def _json(folder: Folder, name: str, kind: type) -> Any:
    try:
        value = parse(bytes(folder.map_extra(name, MAX_SETTINGS_BYTES)))
    except ValueError as error:
        raise BundleError(f"{folder.path / name}: not JSON, or too much of it ({error}); {REMEDY}") from error
    if not isinstance(value, kind):
        raise BundleError(f"{folder.path / name}: not a JSON {kind.__name__}; {REMEDY}")
    return value


def _table(path: Path, tensors: ArrayFile) -> Floats:
    """Return a row for each token: the row that `mapping` gives it, times its weight."""
    name = "embeddings" if "embeddings" in tensors.arrays else "embedding.weight"
    if name not in tensors.arrays:
        raise BundleError(f"{path}: it has neither embeddings nor embedding.weight; {REMEDY}")
    table, mapping = _floats(path, name, tensors), tensors.arrays.get("mapping")
    if table.ndim != 2 or not len(table) or not 1 <= table.shape[1] <= MAX_DIMENSION:
        raise BundleError(f"{path}: {name} are not rows of 1 to {MAX_DIMENSION} numbers")
    if mapping is not None:
        max_tokens = min(MAX_TOKENS, MAX_TABLE_BYTES // (4 * table.shape[1]))
        if mapping.ndim != 1 or mapping.dtype.kind not in "iu" or not 0 < len(mapping) <= max_tokens:
            raise BundleError(f"{path}: mapping is not a list of rows for at most {max_tokens} tokens")
        if mapping.min() < 0 or mapping.max() >= len(table):
            raise BundleError(f"{path}: mapping names a row that is not among the {len(table)} of the table")
        table = table[mapping.astype(np.int64)]
    if "weights" in tensors.arrays:
        weights = _floats(path, "weights", tensors)
        if weights.shape != (len(table),):
            raise BundleError(f"{path}: weights are not one for each of {len(table)} tokens")
        table = table * weights[:, None]
    if not np.isfinite(table).all():
        raise BundleError(f"{path}: {name} hold NaN or infinity")
    return np.ascontiguousarray(table)


def _floats(path: Path, name: str, tensors: ArrayFile) -> Floats:
    array, dtype = tensors.arrays[name], tensors.dtypes[name]
    if dtype == "BF16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    if dtype not in ("F16", "F32", "F64", "I8"):
        raise BundleError(f"{path}: {name} are of the type {quote(dtype)}, and not floats")
    with np.errstate(over="ignore"):
        return array.astype(np.float32)
