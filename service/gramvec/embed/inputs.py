"""Texts before they are embedded: each is checked, cut if that was asked for, and they come in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, get_args

from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError
from gramvec.text.inputs import has_surrogate, iterate_texts, list_texts, not_a_text

TruncationDirection = Literal["left", "right"]
DIRECTIONS = get_args(TruncationDirection)


def prepare_texts(
    texts: Iterable[str],
    max_characters: int,
    *,
    truncate: bool = False,
    truncation_direction: TruncationDirection = "right",
) -> list[str]:
    """Return the texts as a list, checked and, with `truncate`, cut to max_characters; see Embedder.prepare."""
    listed = list_texts(texts)
    if truncation_direction not in DIRECTIONS:
        raise InputError("truncation_direction: must be 'left' or 'right'", field="truncation_direction")
    if _need_no_check(listed, max_characters):
        return list(listed)
    return [_text(index, text, max_characters, truncate, truncation_direction) for index, text in enumerate(listed)]


def in_batches(texts: Iterable[str], batch_size: int, embed: Callable[[list[str]], Vectors]) -> Iterator[Vectors]:
    """Yield the vectors of batch_size texts at a time, lazily; an InputError gives the text's index in the whole input.

    Raises InputError at once for a value that is not an iterable of texts, and for a batch_size below 1.
    """
    if batch_size < 1:
        raise InputError(f"batch_size: must be at least 1, got {batch_size}", field="batch_size")
    iterator = iterate_texts(texts)

    def blocks() -> Iterator[Vectors]:
        first = 0
        while batch := list(islice(iterator, batch_size)):
            try:
                vectors = embed(batch)
            except InputError as error:
                if error.index is None or not first:
                    raise
                sentence = f"of the texts from number {first} on (the first is 0), {error}"
                raise InputError(sentence, index=first + error.index) from error
            yield vectors
            first += len(batch)

    return blocks()


def _need_no_check(texts: Sequence[str], max_characters: int) -> bool:
    """Return True if all texts are ASCII and short enough, which saves the check of each (60 us for 256)."""
    try:
        return all(map(str.isascii, texts)) and max(map(len, texts), default=0) <= max_characters
    except TypeError:
        return False


def _text(index: int, text: str, max_characters: int, truncate: bool, direction: TruncationDirection) -> str:
    if not isinstance(text, str):
        raise not_a_text(index, text)
    if len(text) > max_characters:
        if not truncate:
            raise InputError(
                f"text {index} has {len(text)} characters, the limit is {max_characters}: "
                "shorten it or pass truncate=true",
                index=index,
            )
        text = text[:max_characters] if direction == "right" else text[-max_characters:]
    if not text.isascii() and has_surrogate(text):
        raise InputError(
            f"text {index} has a lone surrogate, which is no character; remove it or decode it properly",
            index=index,
        )
    return text
