"""Texts of parts: a name with what tells it from its variants, each part in one of several wordings."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import NamedTuple

from gramvec_training.data.made_tables import slips, writing
from gramvec_training.data.made_tables.styles import Style


class Part(NamedTuple):
    """A part of a title.

    Attributes:
        ways: wordings that mean the same.
        loss: how often it is left out of a title where much goes wrong; 0 for what names the thing.
        number: a measure, of which `ways` are the units.
    """

    ways: tuple[str, ...]
    loss: float = 0.0
    number: Decimal | None = None


class Title(NamedTuple):
    """The parts of a title, and words that a table may add."""

    parts: tuple[Part, ...]
    extras: tuple[str, ...] = ()


def part(text: str, loss: float = 0.0) -> Part:
    """Return a part of wordings that "|" parts."""
    return Part(tuple(text.split("|")), loss)


def measure(number: float | str | Decimal, units: str, loss: float = 0.0) -> Part:
    """Return a part that is a number with a unit, of which there are several spellings."""
    return Part(tuple(units.split("|")), loss, Decimal(str(number)))


def write_title(value: Title, style: Style, drawn: Random, noise: float) -> str:
    """Return a title in the order of the table, with parts left out, in other words, and with slips."""
    shown = []
    for piece in value.parts:
        if drawn.random() < piece.loss * noise:
            continue
        shown.append(_write_part(piece, style, drawn, noise))
    if style.habit % 3 == 1 and len(shown) > 2:
        # This table has what describes a thing in an order of its own.
        head, tail = shown[:1], shown[1:]
        Random(style.habit).shuffle(tail)
        shown = head + tail
    if len(shown) > 2 and drawn.random() < 0.2 * noise:
        at = drawn.randrange(1, len(shown))
        shown.insert(drawn.randrange(len(shown)), shown.pop(at))
    gap = " - " if style.habit % 7 == 3 else ", " if style.habit % 7 == 5 else " "
    text = gap.join(filter(None, shown)) if drawn.random() < 0.7 else " ".join(filter(None, shown))
    if value.extras and drawn.random() < 0.35 * noise:
        text = (
            f"{text} {drawn.choice(value.extras)}" if drawn.random() < 0.7 else f"{drawn.choice(value.extras)} {text}"
        )
    return writing.write_identity(text, style._replace(short=style.short / 2), drawn, noise * 0.7)


def _write_part(piece: Part, style: Style, drawn: Random, noise: float) -> str:
    way = piece.ways[style.habit % len(piece.ways)]
    if drawn.random() < 0.3 * noise:
        way = drawn.choice(piece.ways)
    if piece.number is None:
        return slips.slip(way, drawn) if way.isalpha() and drawn.random() < 0.08 * noise else way
    return writing.write_quantity((piece.number, way), style, drawn, noise)


def replace_part(title: Title, at: int, new: Part) -> Title:
    """Return a title with another part at a place."""
    parts = list(title.parts)
    parts[at] = new
    return title._replace(parts=tuple(parts))


def word_parts(parts: Sequence[Part]) -> str:
    """Return parts as they are first worded."""
    return " ".join(piece.ways[0] if piece.number is None else f"{piece.number}{piece.ways[0]}" for piece in parts)
