"""Marks of where two texts differ: letters within words that are nearly alike, whole words, and numbers."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

SegmentKind = Literal["same", "letters", "word", "number"]

# Longer texts are cut before they are compared: the comparison takes quadratic time in tokens at worst.
MAX_CHARACTERS = 600
# Two words that share this part of their letters are shown letter by letter.
MIN_ALIKE = 0.5
_TOKEN = re.compile(r"\d+|[^\W\d_]+|\s+|.", re.DOTALL)
ELLIPSIS = "…"


class Segment(NamedTuple):
    """A part of a text, and how it differs from the other text."""

    text: str
    kind: SegmentKind


def mark_differences(left: str, right: str) -> tuple[list[Segment], list[Segment]]:
    """Split two texts into segments that are the same or differ.

    Case and the length of white space make no difference. Texts are cut after MAX_CHARACTERS, with an ellipsis.

    Args:
        left: a text of any length.
        right: a text of any length.

    Returns:
        The segments of both texts, in order. Their texts joined are the texts, as far as these are shown.
    """
    left_text, right_text = _shorten(left), _shorten(right)
    a, b = _TOKEN.findall(left_text), _TOKEN.findall(right_text)
    left_segments: list[Segment] = []
    right_segments: list[Segment] = []
    matcher = SequenceMatcher(None, [_fold(token) for token in a], [_fold(token) for token in b], autojunk=False)
    for tag, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        if tag == "equal":
            left_segments += [Segment(token, "same") for token in a[a_from:a_to]]
            right_segments += [Segment(token, "same") for token in b[b_from:b_to]]
        else:
            marked = _mark_tokens(a[a_from:a_to], b[b_from:b_to])
            left_segments += marked[0]
            right_segments += marked[1]
    return _merge(left_segments), _merge(right_segments)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + ELLIPSIS


def _fold(token: str) -> str:
    return " " if token.isspace() else token.casefold()


def _mark_tokens(a: list[str], b: list[str]) -> tuple[list[Segment], list[Segment]]:
    """Mark tokens that differ: words that stand in the same place are compared letter by letter."""
    words_a = [token for token in a if token.isalpha()]
    words_b = [token for token in b if token.isalpha()]
    if len(words_a) == len(words_b):
        partners = [_mark_letters(a_word, b_word) for a_word, b_word in zip(words_a, words_b, strict=True)]
        in_left, in_right = iter([pair[0] for pair in partners]), iter([pair[1] for pair in partners])
        return (
            [part for token in a for part in (next(in_left) if token.isalpha() else [_mark_whole(token)])],
            [part for token in b for part in (next(in_right) if token.isalpha() else [_mark_whole(token)])],
        )
    return [_mark_whole(token) for token in a], [_mark_whole(token) for token in b]


def _mark_whole(token: str) -> Segment:
    if token.isspace():
        return Segment(token, "same")
    return Segment(token, "number" if token.isdigit() else "word")


def _mark_letters(left_text: str, right_text: str) -> tuple[list[Segment], list[Segment]]:
    matcher = SequenceMatcher(None, left_text.casefold(), right_text.casefold(), autojunk=False)
    # Folding may change a word's length; then its letters have no places of their own.
    if (
        len(left_text.casefold()) != len(left_text)
        or len(right_text.casefold()) != len(right_text)
        or matcher.ratio() < MIN_ALIKE
    ):
        return [Segment(left_text, "word")], [Segment(right_text, "word")]
    left: list[Segment] = []
    right: list[Segment] = []
    for tag, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        kind: SegmentKind = "same" if tag == "equal" else "letters"
        left.append(Segment(left_text[a_from:a_to], kind))
        right.append(Segment(right_text[b_from:b_to], kind))
    return left, right


def _merge(segments: list[Segment]) -> list[Segment]:
    merged: list[Segment] = []
    for segment in segments:
        if not segment.text:
            continue
        if merged and merged[-1].kind == segment.kind:
            merged[-1] = Segment(merged[-1].text + segment.text, segment.kind)
        else:
            merged.append(segment)
    return merged
