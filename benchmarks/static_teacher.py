"""A static model of gramvec-multi's teacher, as model2vec makes them: python -m benchmarks.static_teacher DATA FOLDER.

Each token by itself is given to the encoder; its vectors' leading axes are kept, and a token weighs a / (a + p), p by
Zipf's law from its rank among the tokens. A row is computed for the tokens that the texts in DATA, a folder of .tsv
files, have: the others, of 250,002 in all, are zeros, which changes no figure on these texts but that of the axes.

    python -m benchmarks.static_teacher $GRAMVEC_DATA/dev/multilingual runs/static-teacher
    make languages PEERS='--peer model2vec=runs/static-teacher'
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from gramvec_training.packed_e5 import PackedEncoder, find_packed_weights
from gramvec_training.readers.lines import read_texts

DIMENSION = 256
A = 1e-4  # model2vec's
TOKENS_A_BLOCK = 4_096


def main(data: Path, folder: Path) -> None:
    """Write the static model."""
    from model2vec import StaticModel

    encoder = PackedEncoder(find_packed_weights())
    lines = {line for path in sorted(data.rglob("*.tsv")) for line in read_texts(path)}
    texts = [text for line in sorted(lines) for text in line.split("\t")]
    used = np.unique(np.concatenate([np.array(ids) for ids in encoder.tokenize(texts)]))
    vectors = np.concatenate(
        [encoder.encode_tokens(used[start : start + TOKENS_A_BLOCK]) for start in range(0, len(used), TOKENS_A_BLOCK)]
    ).astype(np.float32)
    vectors -= vectors.mean(axis=0)
    axes = np.linalg.svd(vectors, full_matrices=False)[2][:DIMENSION]
    ranks = 1 / np.arange(2, encoder.tokens + 2)
    shares = ranks / ranks.sum()
    table = np.zeros((encoder.tokens, DIMENSION), np.float32)
    table[used] = vectors @ axes.T * (A / (A + shares[used]))[:, None]
    StaticModel(vectors=table, tokenizer=encoder.tokenizer, config={"normalize": True}).save_pretrained(folder)
    print(f"{folder}: {len(used):,} of {encoder.tokens:,} tokens")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
