"""Medicines: another dose, form, pack or maker is another one."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from gramvec_training.data.made_tables import writing
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.titles import Part, Title, measure, part, write_title

_WORDS = LEXICON["medicines"]
_STEMS, _ENDS, _BRANDS = (_WORDS[name].split() for name in ("stems", "ends", "brands"))
_FORMS: dict[str, list[str]] = _WORDS["forms"]
_DOSES = (
    (
        "mg|mg|MG|mg.",
        "0.25 0.5 1 2 2.5 4 5 7.5 10 12.5 15 16 20 25 30 37.5 40 50 75 80 100 125 150 200 250 300 400 500 850 1000",
    ),
    ("mg|mg|MG", "1 2 2.5 5 10 20 25 40 50 100 250 500 850 1000"),
    ("mcg|µg|ug", "2.5 5 10 12.5 25 50 75 88 100 125 150 200"),
    ("g|gm", "0.5 1 1.5 2 4 5 10"),
    ("mg/ml|mg per ml", "0.5 1 2 2.5 5 10 20 25 50 100"),
    ("%", "0.05 0.1 0.25 0.5 1 1.5 2 2.5 5 10 20"),
    ("IU|I.U.|iu", "100 400 500 1000 2000 5000 10000 20000 50000"),
    ("mg/5ml|mg/5 ml", "2.5 5 50 62.5 100 120 125 200 250 400"),
)
_PACKS = (7, 10, 12, 14, 20, 21, 28, 30, 50, 56, 60, 84, 90, 98, 100)
_SALTS, _KINDS = _WORDS["salts"], _WORDS["kinds"]


def _draw_name(drawn: Random) -> str:
    if drawn.random() < 0.4:
        return _draw_brand(drawn)
    return "".join((drawn.choice(_STEMS), drawn.choice(("", "", *"aeio")), drawn.choice(_ENDS))).capitalize()


def _draw_brand(drawn: Random) -> str:
    return "".join(drawn.choice(_BRANDS) for _ in range(drawn.randint(2, 3))).capitalize()


def draw_medicines(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return medicines, most of them in several doses, forms and packs."""
    language = drawn.choice(("en", "en", "en", *_FORMS))
    ends = (" Pharma", "", " Labs", " AG", " Ltd")
    makers = [f"{_draw_brand(drawn)}{drawn.choice(ends)}" for _ in range(drawn.randint(5, 60))]
    made: list[Thing] = []
    while len(made) < count:
        thing = _draw_one(language, makers, drawn)
        made.append(thing)
        # A range of one brand: usual here, whatever the table.
        while drawn.random() < 0.3 + kin:
            made.append(_vary(thing, language, makers, drawn))
    return made[:count]


def _draw_one(language: str, makers: list[str], drawn: Random) -> Thing:
    name = [part(_draw_name(drawn))]
    if drawn.random() < 0.12:
        name.append(part(drawn.choice(_SALTS), 0.5))
    elif drawn.random() < 0.15:
        name.append(part(drawn.choice(_KINDS)))
    return _fill(
        {"maker": drawn.choice(makers)},
        name,
        _draw_dose(drawn),
        part(drawn.choice(_FORMS[language]), 0.25),
        drawn.choice(_PACKS),
    )


def _draw_dose(drawn: Random) -> Part:
    units, doses = drawn.choices(_DOSES, (5, 3, 1, 1, 1, 1, 0.5, 1))[0]
    return measure(drawn.choice(doses.split()), units)


def _fill(thing: Thing, name: list[Part], dose: Part, form: Part, pack: int) -> Thing:
    number = part(f"{pack}|x{pack}|{pack} pcs|N{pack}|{pack}'s")
    return thing | {
        "name": Title(tuple(name)),
        "dose": (dose.number, dose.ways[0]),
        "form": Title((form,)),
        "pack": str(pack),
        "drug": Title((*name, dose, form)),
        "full": Title((*name, dose, form, number)),
        "parts": (name, dose, form, pack),
    }


def _vary(thing: Thing, language: str, makers: list[str], drawn: Random) -> Thing:
    """Return the same brand in another dose, form or pack, or of another maker."""
    name, dose, form, pack = thing["parts"]
    way = drawn.choice(("dose", "dose", "dose", "ten", "form", "pack", "maker", "kind"))
    if way == "dose":
        doses = dict(_DOSES)["|".join(dose.ways)].split()
        dose = dose._replace(number=Decimal(drawn.choice(doses)))
    elif way == "ten":
        dose = dose._replace(number=dose.number * 10 if dose.number < 100 else dose.number / 10)
    elif way == "form":
        form = part(drawn.choice(_FORMS[language]), 0.0)
    elif way == "pack":
        pack = drawn.choice(_PACKS)
    elif way == "maker":
        thing = thing | {"maker": drawn.choice(makers)}
    else:
        name = [name[0], part(drawn.choice(_KINDS))]
    return _fill(thing, list(name), dose, form, pack)


def change_medicine(thing: Thing, drawn: Random, noise: float) -> Thing:
    """Return a medicine as another list has it: of grams for milligrams."""
    name, dose, form, pack = thing["parts"]
    if dose.ways[0] == "mg" and dose.number >= 100 and drawn.random() < 0.08 * noise:
        dose = measure(dose.number / 1000, "g")
        return _fill(thing, name, dose, form, pack)
    return thing


_COLUMNS = {
    "name": Column(("name", "brand", "medicine", "substance"), write_title, 0.0),
    "dose": Column(("strength", "dose", "dosage"), writing.write_quantity, 0.05),
    "form": Column(("form", "dosage_form", "type"), write_title, 0.05),
    "pack": Column(("pack", "pack_size", "quantity"), writing.write_plain, 0.05),
    "drug": Column(("drug", "medicine", "product", "description"), write_title, 0.0),
    "full": Column(("article", "product", "item"), write_title, 0.0),
    "maker": Column(("manufacturer", "company", "holder"), writing.write_text, 0.04),
}  # fmt: skip
_LAYOUTS = """
drug; full; name dose; name dose form; name dose form pack; drug maker; drug pack; name dose form pack maker;
full maker; name form dose maker
"""
MEDICINES = ThingFamily("medicines", _COLUMNS, _LAYOUTS, draw_medicines, change_medicine)
