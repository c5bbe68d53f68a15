"""Bank transfers and open items: the same payer in another month, or with another invoice, is another one."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

from gramvec_training.data.made_tables import slips, words, writing
from gramvec_training.data.made_tables.families import people
from gramvec_training.data.made_tables.families.companies import draw_company_name, write_company
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.styles import Style

_WORDS = LEXICON["transfers"]
_MONTHS: dict[str, str] = _WORDS["months"]
_REGULAR: dict[str, list[str]] = _WORDS["regular"]
_INVOICE: dict[str, str] = _WORDS["invoice"]
_ADDED = ("thanks", "SEPA", "EREF+NOTPROVIDED", "danke", "merci", "online", "KD 4711", "Dauerauftrag")
_COUNTRY = {"en": "GB", "de": "DE", "fr": "FR", "es": "ES", "pl": "PL", "it": "IT"}
_LOCALE = {"en": "en_GB", "de": "de_DE", "fr": "fr_FR", "es": "es_ES", "pl": "pl_PL", "it": "it_IT"}


class Purpose(NamedTuple):
    """What a transfer is for: an invoice by its number, or a month's payment."""

    language: str
    invoice: str
    regular: str
    month: date


def write_payer(value: Any, style: Style, drawn: Random, noise: float) -> str:
    """Return the name of the person or company that pays."""
    if isinstance(value, people.PersonName):
        return people.write_name(value, style, drawn, noise)
    return write_company(value, style, drawn, noise)


def write_purpose(value: Purpose, style: Style, drawn: Random, noise: float) -> str:
    """Return the purpose as a clerk or a payer words it."""
    if value.regular:
        month = _MONTHS[value.language].split()[value.month.month - 1]
        year = value.month.year
        number = f"{value.month.month:02d}"
        ways = [f"{month} {year}", f"{number}/{year}", f"{number}.{year}", f"{month[:3]} {year % 100:02d}"]
        when = ways[style.habit % 4] if drawn.random() > 0.3 * noise else drawn.choice(ways)
        text = f"{value.regular} {when}"
    else:
        ways = _INVOICE[value.language].split("|")
        way = ways[style.habit % len(ways)] if drawn.random() > 0.5 * noise else drawn.choice(ways)
        number = value.invoice
        if drawn.random() < 0.25 * noise:
            number = number.replace("-", drawn.choice(("", "/", " "))).replace("/", drawn.choice(("", "-", "/")))
        elif drawn.random() < 0.05 * noise:
            number = slips.slip_digit(number, drawn)
        text = way.format(number)
    if drawn.random() < 0.12 * noise:
        text = f"{text} {drawn.choice(_ADDED)}"
    return writing.write_identity(text, style, drawn, noise * 0.4)


def draw_transfers(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return transfers; many payers pay month after month, or several invoices."""
    language = drawn.choice(tuple(_MONTHS))
    locale = words.make_locale(_LOCALE[language])
    start = date(drawn.randint(2015, 2025), drawn.randint(1, 12), 1)
    form = drawn.choice(("{y}-{n:04d}", "{n}", "R{y}{n:05d}", "{y}/{n}", "{n}/{m:02d}/{y}", "A{n:06d}"))
    payers = max(5, int(count * (1 - min(kin + 0.2, 0.9))))
    number = drawn.randint(100, 5000)
    made: list[Thing] = []
    while len(made) < count:
        payer: Any
        if drawn.random() < 0.6:
            payer = people.draw_person(locale, drawn, middles=False)["person"]
        else:
            proper, trade = draw_company_name(locale, drawn)
            payer = (
                proper,
                trade,
                drawn.choice(("", "GmbH|", "Ltd|Limited", "S.A.|SA")) if language != "de" else "GmbH|",
            )
        iban = f"{_COUNTRY[language]}{drawn.randint(10, 99)}{drawn.randint(10**17, 10**18 - 1)}"
        regular = drawn.choice(_REGULAR[language]) if drawn.random() < 0.5 else ""
        amount = (
            Decimal(drawn.randint(900, 250_000)) / 100 if drawn.random() < 0.6 else Decimal(drawn.randint(2, 300) * 5)
        )
        for at in range(drawn.randint(1, max(1, 2 * count // payers))):
            number += drawn.randint(1, 4)
            day = start + timedelta(days=30 * at + drawn.randint(0, 4 if regular else 200))
            if not regular:
                amount = Decimal(drawn.randint(900, 250_000)) / 100
            made.append(
                {
                    "payer": payer,
                    "purpose": Purpose(language, form.format(y=day.year, n=number, m=day.month), regular, day),
                    "amount": amount.quantize(Decimal("0.01")),
                    "day": day,
                    "iban": iban,
                    "currency": "EUR",
                }
            )
    return made[:count]


def change_transfer(thing: Thing, drawn: Random, noise: float) -> Thing:
    """Return a transfer as the bank has it: some days later, less a discount or a fee, from another's account."""
    made = dict(thing)
    if drawn.random() < noise:
        made["day"] = thing["day"] + timedelta(days=drawn.choice((1, 1, 2, 3, 7, 14, 21)))
    if drawn.random() < 0.08 * noise:
        made["amount"] = (thing["amount"] * drawn.choice((Decimal("0.98"), Decimal("0.97"), Decimal("0.5")))).quantize(
            Decimal("0.01")
        )
    elif drawn.random() < 0.4 * noise:
        # Other money, exchanged at the rate of another day.
        made["amount"] = (thing["amount"] * Decimal(str(round(drawn.uniform(0.93, 1.07), 4)))).quantize(Decimal("0.01"))
    if drawn.random() < 0.15 * noise:
        made["iban"] = None
    if isinstance(thing["payer"], people.PersonName) and drawn.random() < 0.08 * noise:
        # Husband or wife pays.
        first = drawn.choice(words.list_person_names(_LOCALE[thing["purpose"].language])[1])
        made["payer"] = thing["payer"]._replace(first=first)
    return made


_COLUMNS = {
    "payer": Column(("payer", "name", "customer", "debtor", "auftraggeber"), write_payer, 0.02),
    "purpose": Column(("purpose", "reference", "text", "verwendungszweck", "details"), write_purpose, 0.04),
    "amount": Column(("amount", "sum", "betrag", "total"), writing.write_amount, 0.01),
    "day": Column(("date", "booked", "datum", "due"), writing.write_date, 0.03),
    "iban": Column(("iban", "account", "konto"), writing.write_code, 0.15, weak=True),
    "currency": Column(("currency", "cur"), writing.write_plain, 0.02, weak=True),
}
_LAYOUTS = """
payer purpose amount day; payer purpose amount; payer purpose amount day iban; payer amount day; purpose amount;
payer purpose; payer purpose amount day iban currency; purpose amount iban
"""
TRANSFERS = ThingFamily("transfers", _COLUMNS, _LAYOUTS, draw_transfers, change_transfer)
