"""Lists of names alone, a few of which are written in many ways: a letter or a space lost, swapped, doubled."""

from __future__ import annotations

from random import Random

from gramvec_training.data.made_tables import slips, words
from gramvec_training.data.made_tables.records import MadeTable, make_key, pairs_within

LOCALES = ("en_US", "en_GB", "de_DE", "fr_FR", "es_ES", "it_IT", "pl_PL", "nl_NL", "pt_BR", "cs_CZ", "tr_TR", "ru_RU")
# Names of a list, those of them that are written in several ways, and in how many.
NAMES, SPELT, SPELLINGS = (10, 25, 60, 150), (1, 2, 5), (3, 5, 10, 20)
# How often a spelling has lost a space or has one more; and has another slip, too.
JOINED, TWICE = 0.2, 0.1


def make_spellings(number: int, drawn: Random) -> MadeTable:
    """Return a list of firms, people, or towns with a street."""
    write = (_write_firm, _write_person, _write_place)[number % 3]
    locale = words.make_locale(drawn.choice(LOCALES))
    names = list(dict.fromkeys(write(locale, drawn) for _ in range(drawn.choice(NAMES))))
    rows = {make_key([name]): (which, name) for which, name in enumerate(names)}
    for which in drawn.sample(range(len(names)), min(len(names), drawn.choice(SPELT))):
        for _ in range(drawn.choice(SPELLINGS)):
            text = _misspell(names[which], drawn)
            rows.setdefault(make_key([text]), (which, text))
    shown = list(rows.values())
    drawn.shuffle(shown)
    columns = {"name": [name for _, name in shown]}
    return MadeTable(
        f"spellings-{number}", "spellings", "ordered list", columns, None, pairs_within([which for which, _ in shown])
    )


def _misspell(name: str, drawn: Random) -> str:
    text = slips.split_or_join(name, drawn) if drawn.random() < JOINED else slips.slip(name, drawn)
    return slips.slip(text, drawn) if drawn.random() < TWICE else text


def _write_firm(locale: words.Locale, drawn: Random) -> str:
    return str(words.open_faker(locale.code, drawn).company())


def _write_person(locale: words.Locale, drawn: Random) -> str:
    men, women, last_names = words.list_person_names(locale.code)
    return f"{drawn.choice(men + women)} {drawn.choice(last_names)}"


def _write_place(locale: words.Locale, drawn: Random) -> str:
    fake = words.open_faker(locale.code, drawn)
    return f"{words.draw_street(locale.code, fake, drawn)}, {words.draw_town(locale, fake, drawn)}"
