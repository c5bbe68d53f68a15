"""Imported models with a changed tokenizer.json, digests right: each opens and cuts texts, or ends in one sentence."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np

from fuzz import bundles, mutate
from gramvec.bundle.bundle import open_bundle
from gramvec.bundle.manifest import TOKENIZER
from gramvec.errors import BundleError, InputError
from gramvec.hub.static_models import import_static
from support import static

LETTERS = "thecatsonm.,!12 \u65e5\u03c3\u00e9\u2581\u3000"
TOKENIZERS = {"word-pieces": static.word_pieces, "unigram-pieces": static.unigram_pieces}


def prepare(bases: Path) -> None:
    """Import small models of model2vec, of word pieces and of Unigram pieces."""
    bases.mkdir(parents=True, exist_ok=True)
    for name, make in TOKENIZERS.items():
        if not (bases / name).exists():
            source = static.write_model2vec(bases / f"model2vec-{name}", make())
            import_static(source, bases / name, name=name)


def one_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    """Change the tokenizer, open the bundle and cut texts into tokens."""
    made = Path(shutil.copytree(bases / numbers.choice([*TOKENIZERS]), folder / "bundle"))
    file = made / TOKENIZER
    values = json.loads(file.read_bytes())
    for _ in range(numbers.choice([1, 1, 2, 3])):
        values = mutate.value(numbers, values)
    data = mutate.to_json(values)
    file.write_bytes(mutate.content(numbers, data) if numbers.random() < 0.2 else data)
    bundles.sign(made)
    texts = mutate.texts(numbers, LETTERS)
    try:
        bundle = open_bundle(made)
        batch = bundle.memoized(texts)
    except (BundleError, InputError) as error:
        mutate.check_sentence(error)
        return
    assert len(batch.offsets) == len(texts) + 1
    assert np.all((batch.ids >= 0) & (batch.ids < bundle.manifest.table_rows))
