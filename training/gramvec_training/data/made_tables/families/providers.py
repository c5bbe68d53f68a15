"""Registers that are put together from others: most sites stand several times, each source writes them its own way."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import NamedTuple

from gramvec_training.data.made_tables import slips, words, writing
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.styles import Style

_WORDS = LEXICON["providers"]
_FIRST, _SECOND = (_WORDS[name].split() for name in ("first", "second"))
_SAINTS: list[str] = LEXICON["sites"]["saints"]
_LOCALES = ("en_US", "en_US", "en_GB", "de_DE", "fr_FR", "es_ES", "it_IT", "nl_NL")
# Of the sites, those of an operator that has others, too; that are named after a person; that had another name.
RUN, OF_PERSON, RENAMED = 0.6, 0.35, 0.02
# Of the rows that name an operator, those that lose it where much goes wrong.
ALONE = 0.3
_cut = partial(writing.cut, least=0.6)


class Provider(NamedTuple):
    """What a site is called: who runs it, its own name in ways, what it is in ways; a person's first and last name."""

    operator: tuple[str, ...]
    own: tuple[str, ...]
    kind: tuple[str, ...]
    person: tuple[str, str] | None


def write_provider(value: Provider, style: Style, drawn: Random, noise: float) -> str:
    """Return a name: the operator in front or not, what the site is or not, a person's last name in front or not."""
    habit = style.habit if drawn.random() > 0.25 * noise else drawn.randrange(1 << 20)
    own = drawn.choice(value.own) if drawn.random() < 0.3 * noise else value.own[habit % len(value.own)]
    kind = value.kind[habit // 5 % len(value.kind)]
    if value.person:
        first, last = value.person
        own = (f"{last}, {first}", last, last, f"{first} {last}")[habit // 7 % 4]
        kind = "" if habit // 7 % 4 == 0 else kind
    if habit // 3 % 3 == 0 and value.operator:
        kind = ""
    site = f"{own} {kind}".strip()
    if not value.operator or (habit // 11 % 4 == 0) or drawn.random() < ALONE * noise:
        text = site
    else:
        tie = ("{} - {}", "{} {}", "{}-{}", "{} / {}", "{}: {}")[habit // 13 % 5]
        operator = value.operator[habit // 17 % len(value.operator)]
        text = tie.format(operator, site)
        if drawn.random() < 0.05 * noise:
            text = tie.format(site, site)
    for chance, way in ((0.12, slips.slip), (0.06, slips.lose_word), (0.05, slips.change_marks), (0.06, _cut)):
        if drawn.random() < chance * noise and len(text) > 8:
            text = way(text, drawn)
    text = writing.shorten(text, style.short, drawn)
    return writing.dress(text, style, drawn)


def write_place(value: tuple[str, str, str, str], style: Style, drawn: Random, noise: float) -> str:
    """Return an address; a town and postcode behind it here and there, a kind of street left out."""
    street, number, town, postcode = value
    if drawn.random() < 0.15 * noise and " " in street:
        street = street.rsplit(" ", 1)[0]
    text = writing.write_address((street, number, ""), style, drawn, noise)
    if drawn.random() < 0.15 * noise:
        text = f"{text} {town} {postcode}" if drawn.random() < 0.6 else f"{text}, {town}"
    return text


def draw_providers(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return sites of one town or two; few operators have many of them, some in one house."""
    locale = words.make_locale(drawn.choice(_LOCALES))
    fake = words.open_faker(locale.code, drawn)
    towns = [words.draw_town(locale, fake, drawn) for _ in range(drawn.choice((1, 1, 2)))]
    postcodes = [words.draw_postcode(locale, fake, drawn) for _ in range(20)]
    men, women, last_names = words.list_person_names(locale.code)
    language = locale.code[:2]
    operators = _draw_operators(_WORDS["operators"][language], towns[0], last_names, drawn)
    streets = [words.draw_street(locale.code, fake, drawn) for _ in range(max(10, count // 6))]
    made: list[Thing] = []
    while len(made) < count:
        person = None
        if drawn.random() < OF_PERSON:
            person = (drawn.choice(men + women), drawn.choice(last_names))
            own: tuple[str, ...] = (person[1],)
        elif drawn.random() < 0.3:
            own = tuple(drawn.choice(_SAINTS).split("|"))
        elif drawn.random() < 0.4:
            own = (drawn.choice(streets).rsplit(" ", 1)[0],)
        else:
            own = (_draw_words(drawn),)
        kind = tuple(drawn.choice(_WORDS["kinds"][language]).split("|"))
        operator = drawn.choice(operators) if drawn.random() < RUN else ()
        town, postcode = drawn.choice(towns), drawn.choice(postcodes)
        number = str(drawn.randint(1, 9900 if locale.code == "en_US" else 150))
        thing: Thing = {
            "provider": Provider(operator, own, kind, person),
            "address": (drawn.choice(streets), number, town, postcode),
            "postcode": postcode,
            "town": town,
            "phone": words.draw_phone(locale, drawn),
            "locale": locale.code,
        }
        made.append(thing)
        if drawn.random() < kin * 0.5:
            made.append(_draw_kin(thing, made, operators, drawn))
    return made[:count]


def _draw_operators(heads: list[str], town: str, last_names: tuple[str, ...], drawn: Random) -> list[tuple[str, ...]]:
    """Return what a few operators are called, each in its ways."""
    made = []
    for head in drawn.sample(heads, min(len(heads), drawn.randint(3, 8))):
        last = drawn.choice(last_names)
        made.append(tuple(way.format(t=town, l=last) for way in head.split("|")))
    return made


def _draw_words(drawn: Random) -> str:
    """Return a name of two words."""
    return f"{drawn.choice(_FIRST)} {drawn.choice(_SECOND)}"


def _draw_kin(thing: Thing, made: list[Thing], operators: list[tuple[str, ...]], drawn: Random) -> Thing:
    """Return another site: of the same name elsewhere, in the same house, or with the number of who runs both."""
    other = drawn.choice(made)
    name: Provider = thing["provider"]
    way = drawn.choice(("name", "house", "phone"))
    if way == "name":
        return _move_down_the_street(other, drawn) | {"provider": name}
    new: Provider = other["provider"]._replace(own=(_draw_words(drawn),), person=None)
    if way == "house":
        return thing | {"provider": new._replace(operator=drawn.choice(operators)), "phone": other["phone"]}
    beside = _move_down_the_street(other, drawn)
    return beside | {"provider": new._replace(operator=name.operator), "phone": thing["phone"]}


def _move_down_the_street(thing: Thing, drawn: Random) -> Thing:
    street, number, town, postcode = thing["address"]
    return thing | {"address": (street, str(int(number) + drawn.randint(2, 90)), town, postcode)}


def change_provider(thing: Thing, drawn: Random, noise: float) -> Thing:
    """Return a site as another source has it: another phone, a door beside, the name that it had before."""
    made = dict(thing)
    locale = words.make_locale(thing["locale"])
    if drawn.random() < 0.25 * noise:
        prefix, area, line = thing["phone"]
        phone = words.draw_phone(locale, drawn)
        made["phone"] = (prefix, area, line[:-2] + phone[2][-2:]) if drawn.random() < 0.5 else phone
    if drawn.random() < 0.2 * noise:
        street, number, town, postcode = thing["address"]
        other = str(max(1, int(number) + drawn.choice((-10, -4, -2, 2, 4, 10))))
        made["address"] = (street, other if drawn.random() < 0.7 else f"{number}-{int(number) + 4}", town, postcode)
    if drawn.random() < RENAMED * noise:
        name: Provider = thing["provider"]
        made["provider"] = name._replace(own=(_draw_words(drawn),), person=None)
    return made


_COLUMNS = {
    "provider": Column(("name", "site", "provider", "facility"), write_provider, 0.0),
    "address": Column(("address", "street", "site_address"), write_place, 0.01),
    "postcode": Column(("zip", "postcode", "plz"), writing.write_code, 0.3, weak=True),
    "town": Column(("city", "town", "ort"), writing.write_text, weak=True),
    "phone": Column(("phone", "tel"), writing.write_phone, 0.15, weak=True),
}
_LAYOUTS = """
provider address; provider address phone; provider address postcode phone; provider address postcode town phone;
provider address postcode town; provider address town phone
"""
PROVIDERS = ThingFamily(
    "providers", _COLUMNS, _LAYOUTS, draw_providers, change_provider, noises=(0.4, 0.7, 1.0),
    copied=(0.7, 0.0, 0.9, 0.02, 0.4), copies=(3, 5, 8, 12), sources=5,
)  # fmt: skip
