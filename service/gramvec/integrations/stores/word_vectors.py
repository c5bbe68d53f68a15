"""Files of word vectors in word2vec's formats, for gensim, spaCy and others."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from gramvec.errors import InputError
from gramvec.integrations.models import ModelOrName, embed_texts
from gramvec.text.inputs import list_texts

# Words at a time; a vector as text has some 4 KB.
BLOCK = 4_096

VectorsForm = Literal["txt", "bin"]


def save_word_vectors(
    words: Iterable[str],
    path: str | os.PathLike[str],
    *,
    model: ModelOrName = "gramvec-en",
    dimensions: int | None = None,
    form: VectorsForm = "txt",
) -> int:
    """Write word2vec's text form ("txt") or binary form ("bin") and return the number of words.

    The file is replaced as a whole. gensim reads it by KeyedVectors.load_word2vec_format(path, binary=form == "bin"),
    spaCy by `init vectors`. The text form writes nine significant digits, enough to restore every
    float32 exactly.

    Raises:
        InputError: There is no word, or one is empty, repeated or has white space, which separates numbers there.
    """
    if form not in ("txt", "bin"):
        raise InputError(f"form: must be 'txt' or 'bin', got {form!r}", field="form")
    listed = list_texts(words)
    _check(listed)
    target = Path(path)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        try:
            first = embed_texts(model, listed[:BLOCK], dimensions=dimensions)
            file.write(b"%d %d\n" % (len(listed), first.shape[1]))
            for start in range(0, len(listed), BLOCK):
                block = listed[start : start + BLOCK]
                rows = embed_texts(model, block, dimensions=dimensions) if start else first
                for word, row in zip(block, rows, strict=True):
                    numbers = row.astype("<f4").tobytes() if form == "bin" else _digits(row.tolist())
                    file.write(b"%b %b\n" % (word.encode(), numbers))
            file.close()
            Path(file.name).replace(target)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return len(listed)


def _digits(row: list[float]) -> bytes:
    return " ".join([f"{number:.9g}" for number in row]).encode()


def _check(words: list[str]) -> None:
    if not words:
        raise InputError("there are no words to write", field="words")
    seen: set[str] = set()
    for place, word in enumerate(words):
        if not isinstance(word, str):
            raise InputError(f"word {place} is of type {type(word).__name__}; give str", index=place)
        if not word or word.split() != [word]:
            raise InputError(f"word {place} is empty or has white space; write _ for it, as in new_york", index=place)
        if word in seen:
            raise InputError(f"word {place} occurs twice; leave it out", index=place)
        seen.add(word)
