"""Parts of machines and stores: the same part in another size, material or value is another one."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

from gramvec_training.data.made_tables import writing
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.titles import Part, Title, measure, part, write_title

_WORDS = LEXICON["parts"]
# Of each its names in some languages, its sizes (each of some values), and what it is made of.
_KINDS: list[dict[str, Any]] = _WORDS["kinds"]
_FINISHES: dict[str, list[str]] = _WORDS["finishes"]
_MAKERS = _WORDS["makers"].split()


def draw_parts(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return parts, of which many differ from another in one size alone."""
    language = drawn.choice(("en", "en", "de", "fr", "es", "ru"))
    kinds = drawn.sample(_KINDS, drawn.randint(2, len(_KINDS)))
    number = drawn.choice((_number_of_letters, _number_of_digits, _number_in_row))
    made: list[Thing] = []
    while len(made) < count:
        kind = drawn.choice(kinds)
        chosen = [drawn.choice(values.split()) for values in kind["sizes"]]
        finish = drawn.choice(_FINISHES[kind["finish"]])
        maker = drawn.choice(_MAKERS)
        made.append(_part(kind, language, chosen, finish, maker, number(drawn, len(made))))
        while drawn.random() < 0.2 + kin:
            other, new = list(chosen), finish
            at = drawn.randrange(len(other) + (1 if kind["finish"] != "none" else 0))
            if at < len(other):
                other[at] = drawn.choice(kind["sizes"][at].split())
            else:
                new = drawn.choice(_FINISHES[kind["finish"]])
            made.append(_part(kind, language, other, new, maker, number(drawn, len(made))))
    return made[:count]


def _number_of_letters(drawn: Random, _: int) -> str:
    letters = "".join(drawn.choices("ABCDEFGHKLMPRSTVWX", k=2))
    return f"{letters}-{drawn.randint(100, 9999)}-{drawn.randint(10, 99)}"


def _number_of_digits(drawn: Random, _: int) -> str:
    return f"{drawn.randint(1, 9)}.{drawn.randint(100, 999)}.{drawn.randint(100, 999)}.{drawn.randint(0, 9)}"


def _number_in_row(drawn: Random, place: int) -> str:
    return f"{100_000 + 10 * place + drawn.randint(0, 9)}"


def _part(kind: dict[str, Any], language: str, chosen: list[str], finish: str, maker: str, number: str) -> Thing:
    name = part(kind[language])
    sizes = [_size(text) for text in chosen]
    end = [part(finish, 0.15)] if finish else []
    return {
        "number": number,
        "text": Title((name, *sizes, *end)),
        "name": Title((name, *end)),
        "size": Title(tuple(sizes)),
        "finish": Title((part(finish),)) if finish else "",
        "maker": maker,
        "full": Title((name, *sizes, *end, part(maker, 0.5))),
        "group": kind[language].split("|")[0],
        "price": Decimal(sum(map(ord, number)) * 37 % 9000 + 50) / 100,
        "unit": ("pcs", "m", "set", "box")[sum(map(ord, name.ways[0])) % 4],
    }


def _size(text: str) -> Part:
    """Return a size as a measure where it is one."""
    body = text.removeprefix("x")
    digits = len(body) - len(body.lstrip("0123456789."))
    unit = body[digits:]
    if digits and unit and unit[0].isalpha() and "-" not in unit:
        units = {"ohm": "ohm|Ω|R", "kohm": "kohm|kΩ|k", "uF": "uF|µF|MFD", "mm": "mm|mm|MM|", "m": "m|mtr|meter"}.get(
            unit, unit
        )
        if text.startswith("x"):
            return part(f"x {body[:digits]}|x{body[:digits]}{unit}|x {body[:digits]} {unit}")
        return measure(body[:digits], units)
    if text.startswith("x"):
        return part(f"x{body}|x {body}|X{body}|*{body}")
    return part(text)


def change_part(thing: Thing, drawn: Random, noise: float) -> Thing:
    """Return a part as another store has it: at another price, under a number of its own."""
    made = dict(thing)
    if drawn.random() < 0.6 * noise:
        made["price"] = (thing["price"] * Decimal(drawn.randint(85, 125)) / 100).quantize(Decimal("0.01"))
    if drawn.random() < 0.1 * noise:
        made["maker"] = None
    return made


_COLUMNS = {
    "number": Column(("part_no", "number", "article", "sku", "mpn"), writing.write_code, 0.12, weak=True),
    "text": Column(("description", "text", "bezeichnung", "item"), write_title, 0.0),
    "name": Column(("name", "part", "type"), write_title, 0.0),
    "size": Column(("dimension", "size", "value"), write_title, 0.04),
    "finish": Column(("material", "finish", "spec"), write_title, 0.08),
    "maker": Column(("manufacturer", "brand", "vendor"), writing.write_plain, 0.1),
    "full": Column(("description", "title", "item"), write_title, 0.0),
    "group": Column(("category", "group", "class"), writing.write_plain, 0.08, weak=True),
    "price": Column(("price", "unit_price", "cost"), writing.write_amount, 0.1, weak=True),
    "unit": Column(("unit", "uom"), writing.write_plain, 0.1, weak=True),
}  # fmt: skip
_LAYOUTS = """
text; full; number text; text maker; name size; name size finish; number text unit; number name size unit; text
group price; name size maker price; number text maker price; number name size finish unit price; text unit
"""
PARTS = ThingFamily("parts", _COLUMNS, _LAYOUTS, draw_parts, change_part)
