"""Restaurants: one name in another street, another kitchen in the same house, are another one."""

from __future__ import annotations

from random import Random

from gramvec_training.data.made_tables import words, writing
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.titles import Part, Title, write_title
from gramvec_training.data.made_tables.words import Locale

_WORDS = LEXICON["restaurants"]


def draw_restaurants(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return restaurants of a few towns."""
    locales = words.draw_locales(drawn)[:3]
    towns = {
        locale.code: [
            words.draw_town(locale, words.open_faker(locale.code, drawn), drawn) for _ in range(drawn.randint(1, 30))
        ]
        for locale in locales
    }
    made: list[Thing] = []
    while len(made) < count:
        locale = drawn.choice(locales)
        place = _draw_one(locale, towns[locale.code], drawn)
        made.append(place)
        if drawn.random() < kin:
            other = _draw_one(locale, towns[locale.code], drawn)
            shared = ("name",) if drawn.random() < 0.6 else ("address", "town", "postcode")
            made.append(other | {key: place[key] for key in shared})
    return made[:count]


def _draw_one(locale: Locale, towns: list[str], drawn: Random) -> Thing:
    fake = words.open_faker(locale.code, drawn)
    men, women, last = words.list_person_names(locale.code)
    town = drawn.choice(towns)
    filled = {
        "l": drawn.choice(last), "l2": drawn.choice(last), "f": drawn.choice(men + women), "t": town,
        "a": drawn.choice(_WORDS["adjectives"].split()), "n": drawn.choice(_WORDS["nouns"].split()),
        "g": drawn.choice(_WORDS["german"].split("|")), "r": drawn.choice(_WORDS["romance"].split("|")),
        "k": drawn.choice(_WORDS["kinds"].split("|")), "c": drawn.choice(_WORDS["cuisines"].split()),
    }  # fmt: skip
    forms = _WORDS["names"]
    script = {"ja": forms[-4:-2], "ru": forms[-2:]}.get(locale.code[:2], forms[:-4])
    ways = [way.format(**filled) for way in drawn.choice(script).split("|")]
    cuisine = drawn.choice(_WORDS["cuisines"].split())
    return {
        "name": Title((Part(tuple(ways)),), ("Restaurant", "Bar", "Cafe", "Kitchen")),
        "address": (words.draw_street(locale.code, fake, drawn), str(drawn.randint(1, 900)), ""),
        "town": town,
        "postcode": words.draw_postcode(locale, fake, drawn),
        "phone": words.draw_phone(locale, drawn),
        "kind": cuisine,
        "price": "$" * drawn.randint(1, 4),
        "locale": locale.code,
    }


def change_restaurant(place: Thing, drawn: Random, noise: float) -> Thing:
    """Return a restaurant as another guide has it: of another kind, with another phone."""
    made = dict(place)
    if drawn.random() < 0.35 * noise:
        made["kind"] = drawn.choice(_WORDS["cuisines"].split())
    if drawn.random() < 0.1 * noise:
        made["phone"] = words.draw_phone(words.make_locale(place["locale"]), drawn)
    return made


_COLUMNS = {
    "name": Column(("name", "restaurant", "place"), write_title, 0.0),
    "address": Column(("addr", "address", "street"), writing.write_address),
    "town": Column(("city", "town"), writing.write_text),
    "postcode": Column(("zip", "postcode"), writing.write_code, weak=True),
    "phone": Column(("phone", "tel"), writing.write_phone, 0.08, weak=True),
    "kind": Column(("type", "cuisine", "kind"), writing.write_plain, 0.1, weak=True),
    "price": Column(("price", "class", "level"), writing.write_plain, 0.2, weak=True),
}
_LAYOUTS = """
name; name town; name address; name address town; name address town phone; name phone;
name address town phone kind; name kind town;
name address postcode town phone kind price; name town kind price
"""
RESTAURANTS = ThingFamily("restaurants", _COLUMNS, _LAYOUTS, draw_restaurants, change_restaurant)
