"""Hospitals, schools and branches of chains: one chain in another street or town, another number, is another site."""

from __future__ import annotations

from random import Random

from gramvec_training.data.made_tables import words, writing
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.titles import Part, Title, write_title
from gramvec_training.data.made_tables.words import Locale

_WORDS = LEXICON["sites"]
_OPERATORS = (
    "Caritas",
    "Helia Group",
    "City of {}",
    "County of {}",
    "Red Cross",
    "State",
    "Diocese of {}",
    "Ramsal Health",
)


def draw_sites(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return sites of some towns; chains have many of them."""
    names = (
        ("hospitals", "schools", "chains")
        if drawn.random() < 0.3
        else (drawn.choice(("hospitals", "schools", "chains")),)
    )
    known = set(_WORDS["hospitals"]) if "schools" not in names else set(_WORDS["schools"])
    codes = [code for code in words.LOCALES if code[:2] in known]
    number = 1 if drawn.random() < 0.6 else drawn.randint(2, 5)
    locales = [words.make_locale(drawn.choice(codes)) for _ in range(number)]
    chains = drawn.sample(_WORDS["chains"], drawn.randint(1, 5))
    made: list[Thing] = []
    while len(made) < count:
        locale = drawn.choice(locales)
        name = drawn.choice(names)
        site = _draw_site(locale, name, chains, drawn)
        made.append(site)
        if drawn.random() < kin:
            made.append(_draw_kin(site, locale, name, chains, drawn))
    return made[:count]


def _draw_site(locale: Locale, name: str, chains: list[str], drawn: Random) -> Thing:
    fake = words.open_faker(locale.code, drawn)
    town = words.draw_town(locale, fake, drawn)
    street = words.draw_street(locale.code, fake, drawn)
    number = str(drawn.randint(1, 30) if drawn.random() < 0.6 else drawn.randint(1, 2500))
    if name == "chains":
        form = drawn.choice(_WORDS["branches"]).replace("{c}", drawn.choice(chains))
        ways = form.split("|")
    else:
        language = locale.code[:2]
        ways = drawn.choice(_WORDS[name].get(language, _WORDS[name]["en"])).split("|")
    last = drawn.choice(words.list_person_names(locale.code)[2])
    saints = drawn.choice(_WORDS["saints"]).split("|")
    named = [last] if locale.code[:2] in ("ja", "zh", "ko", "ru", "tr") or drawn.random() < 0.4 else saints
    ways = [way.format(s=name_of_site, t=town, n=number, street=street) for way in ways for name_of_site in named]
    return {
        "site": Title((Part(tuple(dict.fromkeys(ways))),)),
        "address": (street, str(drawn.randint(1, 220)), ""),
        "postcode": words.draw_postcode(locale, fake, drawn),
        "town": town,
        "country": locale.country,
        "state": _choose_state(town),
        "phone": words.draw_phone(locale, drawn),
        "operator": drawn.choice(_OPERATORS).format(town),
        "code": f"{locale.country}{drawn.randint(1000, 99999)}",
        "locale": locale.code,
    }


def _choose_state(town: str) -> str:
    """Return one of eight states, the same for the same town."""
    return ("North", "South", "East", "West", "Central", "Coast", "Highlands", "Lakes")[sum(map(ord, town)) % 8]


def _draw_kin(site: Thing, locale: Locale, name: str, chains: list[str], drawn: Random) -> Thing:
    """Return a site of the same name elsewhere, another one in the same house, or one of a similar name in town."""
    other = _draw_site(locale, name, chains, drawn)
    way = drawn.choice(("name", "house", "town", "number"))
    told = any(site["town"] in text or any(map(str.isdigit, text)) for text in site["site"].parts[0].ways)
    if way == "name" and not told:
        return other | {"site": site["site"], "operator": site["operator"]}
    if way == "house":
        return other | {key: site[key] for key in ("address", "postcode", "town", "state", "operator")}
    if way == "number":
        ways = site["site"].parts[0].ways
        digits = [way for way in ways if any(letter.isdigit() for letter in way)]
        if digits:
            new = str(drawn.randint(1, 40))
            title = Title((Part(tuple(_other_number(way, new) for way in ways)),))
            return other | {"site": title, "town": site["town"], "state": site["state"]}
    return other | {key: site[key] for key in ("town", "state", "postcode")}


def _other_number(text: str, number: str) -> str:
    return " ".join(
        number if word.isdigit() else word[:1] + number if word[1:].isdigit() else word for word in text.split()
    )


def change_site(site: Thing, drawn: Random, noise: float) -> Thing:
    """Return a site as another list has it: with another entrance, phone or operator."""
    made = dict(site)
    locale = words.make_locale(site["locale"])
    if drawn.random() < 0.25 * noise:
        made["phone"] = words.draw_phone(locale, drawn)
    if drawn.random() < 0.08 * noise:
        street, _, flat = site["address"]
        made["address"] = (street, str(drawn.randint(1, 220)), flat)
    if drawn.random() < 0.3 * noise:
        made["operator"] = None
    return made


_COLUMNS = {
    "site": Column(("name", "site", "facility", "branch", "einrichtung"), write_title, 0.0),
    "address": Column(("address", "street", "strasse"), writing.write_address),
    "postcode": Column(("zip", "postcode", "plz"), writing.write_code, weak=True),
    "town": Column(("city", "town", "ort"), writing.write_text),
    "country": Column(("country", "land"), writing.write_plain, weak=True),
    "state": Column(("state", "region", "province"), writing.write_plain, weak=True),
    "phone": Column(("phone", "tel"), writing.write_phone, 0.15, weak=True),
    "operator": Column(("operator", "owner", "agency"), writing.write_text, 0.2, weak=True),
    "code": Column(("code", "site_id", "provider_no"), writing.write_code, 0.3, weak=True),
}
_LAYOUTS = """
site; site town; site state; site address; site address town; site town state; site address postcode town;
site town country;
site address phone; site address town phone; site address postcode town phone operator; site operator town;
site town code;
site address postcode town state country phone code
"""
SITES = ThingFamily("sites", _COLUMNS, _LAYOUTS, draw_sites, change_site)
