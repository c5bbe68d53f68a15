"""Offers of products: one product in another color, size, capacity or version is another one."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

from gramvec_training.data.made_tables import writing
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.titles import Part, Title, measure, part, word_parts, write_title

_WORDS = LEXICON["products"]
_KINDS: list[dict[str, Any]] = _WORDS["kinds"]
_SOFT = LEXICON["software"]
_PLURALS = {"edition": "editions", "kind": "kinds", "platform": "platforms", "users": "users"}
# How often a shop leaves an attribute out of a title, where much goes wrong.
_LOSS: dict[str, float] = _WORDS["loss"]
_MEASURES: dict[str, tuple[str, str]] = _WORDS["measures"]
_CHOICES: dict[str, list[str]] = _WORDS["choices"]
_NEXT = ("II", "III", "2", "3", "4", "Plus", "Pro", "Mini", "SE")


def draw_products(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return products of one or some kinds; most have variants beside them."""
    kinds = drawn.sample(_KINDS, 1 if drawn.random() < 0.5 else drawn.randint(2, 6))
    brands = drawn.sample(_WORDS["brands"].split(), drawn.randint(4, 25))
    lines = [
        " ".join(drawn.sample(_WORDS["lines"].split(), drawn.choice((1, 1, 2)))) for _ in range(max(12, count // 8))
    ]
    made: list[Thing] = []
    while len(made) < count:
        kind = drawn.choice(kinds)
        version = drawn.choice(("", "", "II", "III", "IV", "2", "3", "4", "5", "6", "X", "S", "7", "8", "3.5"))
        base = [
            part(drawn.choice(brands)),
            part(f"{drawn.choice(lines)} {version}".strip()),
            part(drawn.choice(kind["names"]), 0.3),
        ]
        attributes = {name: draw_attribute(name, drawn) for name in kind["attributes"] if drawn.random() < 0.8}
        price = Decimal(drawn.randint(499, 99_999)) / 100
        made.append(_fill(base, attributes, kind["group"], price))
        while drawn.random() < 0.35 + kin:
            new_base, new = list(base), dict(attributes)
            name = drawn.choice([*new, "version"])
            if name == "version":
                new_base[1] = part(f"{base[1].ways[0].rsplit(' ', 1)[0]} {drawn.choice(_NEXT)}")
            else:
                new[name] = draw_attribute(name, drawn)
            if "code" in new and name != "code" and drawn.random() < 0.8:
                new["code"] = _near_code(new["code"], drawn)
            made.append(
                _fill(
                    new_base,
                    new,
                    kind["group"],
                    (price * Decimal(drawn.randint(90, 120)) / 100).quantize(Decimal("0.01")),
                )
            )
    return made[:count]


def draw_attribute(name: str, drawn: Random) -> Part:
    """Return a value of an attribute with its wordings."""
    loss = _LOSS.get(name, 0.1)
    if name in _MEASURES:
        units, values = _MEASURES[name]
        return measure(drawn.choice(values.split()), units, loss)
    if name in _CHOICES:
        return part(drawn.choice(_CHOICES[name]), loss)
    if name == "shoe":
        size = drawn.randint(35, 47)
        return part(f"{size}|EU {size}|Gr. {size}|size {size}", loss)
    if name == "code":
        return part(_draw_code(drawn), loss)
    return part(drawn.choice(_WORDS["colors"]), loss)


def _draw_code(drawn: Random) -> str:
    letters = "".join(drawn.choices("ABCDEFGHKLMNPRSTVWX", k=drawn.randint(1, 4)))
    digits = str(drawn.randint(10, 99_999))
    return drawn.choice(("{0}{1}", "{0}-{1}", "{0}{1}{2}", "{1}-{2}{0}", "{0}{1}/{2}")).format(
        letters, digits, drawn.choice("ABWSXZ")
    )


def _near_code(code: Part, drawn: Random) -> Part:
    """Return the number of a variant: another last letter or digit."""
    text = code.ways[0]
    last = drawn.choice(
        [letter for letter in ("0123456789" if text[-1].isdigit() else "BWSXKRG") if letter != text[-1]]
    )
    return code._replace(ways=(text[:-1] + last,))


def _fill(base: list[Part], attributes: dict[str, Part], group: str, price: Decimal) -> Thing:
    brand, line, kind = base
    extras = tuple(_WORDS["extras"])
    code = attributes.get("code")
    color = attributes.get("color")
    size = next(
        (
            attributes[name]
            for name in ("capacity", "inches", "shoe", "size", "milliliters", "grams")
            if name in attributes
        ),
        None,
    )
    rest = [attribute for name, attribute in attributes.items() if name != "code" and attribute not in (color, size)]
    everything = (*base, *attributes.values())
    return {
        "title": Title(everything, extras),
        "short": Title((brand, line, kind, *((code,) if code else ()))),
        "brand": brand.ways[0],
        "maker": Title((brand,)),
        "name": Title((line, kind), extras),
        "code": code.ways[0] if code else None,
        "color": Title((color,)) if color else None,
        "size": Title((size,)) if size else None,
        "about": Title(
            (*everything, *(rest * 2)[:3], part(f"{kind.ways[0]} with {word_parts(rest) or 'warranty'}", 0.5)), extras
        ),
        "group": group,
        "price": price,
    }


def change_product(thing: Thing, drawn: Random, noise: float) -> Thing:
    """Return a product as another shop offers it: at another price."""
    made = dict(thing)
    if drawn.random() < 0.8 * noise:
        made["price"] = (thing["price"] * Decimal(drawn.randint(80, 125)) / 100).quantize(Decimal("0.01"))
    elif drawn.random() < 0.3 * noise:
        made["price"] = None
    return made


def draw_software(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return programs; the same one of another year, edition, platform or license is another one."""
    names = _SOFT["names"].split()
    makers = drawn.sample(_SOFT["makers"].split(), drawn.randint(5, 25))
    made: list[Thing] = []
    while len(made) < count:
        maker = drawn.choice(makers)
        number = drawn.choice(
            (
                str(drawn.randint(2003, 2012)),
                f"{drawn.randint(1, 15)}.0|{drawn.randint(1, 15)}",
                f"X{drawn.randint(3, 9)}",
                f"CS{drawn.randint(2, 6)}",
            )
        )
        number = (
            number.split("|")[0]
            if "|" not in number
            else f"{number.split('.')[0]}.0|{number.split('.')[0]}|v{number.split('.')[0]}"
        )
        base = {
            "name": part(" ".join(drawn.sample(names, drawn.choice((1, 2, 2, 3))))),
            "version": part(number),
            "edition": part(drawn.choice(_SOFT["editions"]), 0.2),
            "kind": part(drawn.choice(_SOFT["kinds"]), 0.3),
            "platform": part(drawn.choice(_SOFT["platforms"]), 0.4),
            "users": part(drawn.choice(_SOFT["users"]), 0.35),
        }
        base = {name: piece for name, piece in base.items() if name == "name" or drawn.random() < 0.65}
        price = Decimal(drawn.randint(999, 79_999)) / 100
        made.append(_fill_software(maker, base, price))
        while drawn.random() < 0.25 + kin and len(base) > 1:
            new = dict(base)
            name = drawn.choice([key for key in new if key != "name"])
            new[name] = (
                part(f"{drawn.randint(2003, 2012)}")
                if name == "version"
                else part(drawn.choice(_SOFT[_PLURALS[name]]), new[name].loss)
            )
            made.append(_fill_software(maker, new, Decimal(drawn.randint(999, 79_999)) / 100))
    return made[:count]


def _fill_software(maker: str, parts: dict[str, Part], price: Decimal) -> Thing:
    return {
        "title": Title((part(maker, 0.35), *parts.values())),
        "maker": Title((part(maker),)),
        "price": price,
        "brand": maker,
    }


_COLUMNS = {
    "title": Column(("title", "name", "offer", "product"), write_title, 0.0),
    "short": Column(("name", "product", "model"), write_title, 0.0),
    "brand": Column(("brand", "make"), writing.write_plain, 0.15),
    "maker": Column(("manufacturer", "brand", "vendor"), write_title, 0.3),
    "name": Column(("name", "model", "article"), write_title, 0.0),
    "code": Column(("mpn", "model_no", "sku"), writing.write_code, 0.2, weak=True),
    "color": Column(("color", "farbe", "finish"), write_title, 0.05),
    "size": Column(("size", "variant", "capacity"), write_title, 0.05),
    "about": Column(("description", "details", "text"), write_title, 0.3, weak=True),
    "group": Column(("category", "type"), writing.write_plain, 0.1, weak=True),
    "price": Column(("price", "cost"), writing.write_amount, 0.25, weak=True),
}  # fmt: skip
_LAYOUTS = """
title; title; title; title brand; title price; title brand price; title about price; brand name color size;
brand name code color size;
title group; title code; title maker price; brand name size price color group
"""
PRODUCTS = ThingFamily("products", _COLUMNS, _LAYOUTS, draw_products, change_product, ("offers", "one register"), 3)
SOFTWARE = ThingFamily(
    "software", _COLUMNS, "title; title maker; title maker price; title price", draw_software, change_product,
    ("offers", "one register"),
)  # fmt: skip
