"""Registers of companies: names of one family, other legal forms, successors at one address, branches of a chain."""

from __future__ import annotations

from random import Random

from gramvec_training.data.made_tables import slips, words, writing
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.styles import Style
from gramvec_training.data.made_tables.words import Locale

# Forms of a country, each a line of ways to write one; "^" stands in front of the name, "~" without a space.
_FORMS: dict[str, list[str]] = LEXICON["companies"]["forms"]
_TRADES: dict[str, str] = LEXICON["companies"]["trades"]
_SPARE = LEXICON["companies"]["spare"].split()
_ENDINGS = LEXICON["companies"]["endings"].split()
_LETTERS = "bcdfgklmnprstvz"


def draw_company_name(locale: Locale, drawn: Random) -> tuple[str, str]:
    """Return the proper name of a company and its trade."""
    language = locale.code[:2]
    trade = drawn.choice(_TRADES.get(language, _TRADES["en"]).split())
    men, women, last_names = words.list_person_names(locale.code)
    town = drawn.choice(words.list_towns(locale.country))
    way = drawn.choices(("last", "two", "coined", "spare", "town", "person", "ending"), (30, 10, 15, 10, 10, 10, 15))[0]
    if way == "last":
        proper = drawn.choice(last_names)
    elif way == "two":
        ties = (" & ", "-", " und ") if language == "de" else (" & ", "-", " and ")
        tie = "" if language in ("ja", "zh", "ko") else drawn.choice(ties)
        proper = f"{drawn.choice(last_names)}{tie}{drawn.choice(last_names)}"
    elif way == "coined":
        proper = coin(drawn)
    elif way == "spare":
        proper = f"{drawn.choice(_SPARE)} {coin(drawn)}"
    elif way == "town":
        proper = town
    elif way == "person":
        proper = f"{drawn.choice(men + women)} {drawn.choice(last_names)}"
    else:
        proper = drawn.choice(_SPARE) + drawn.choice(("", " ", "-")) + drawn.choice(_ENDINGS)
    return proper, trade if drawn.random() < 0.75 else ""


def coin(drawn: Random) -> str:
    """Return a word that means nothing."""
    syllables = "".join(drawn.choice(_LETTERS) + drawn.choice("aeiou") for _ in range(drawn.randint(2, 3)))
    return syllables.capitalize() + drawn.choice(("", "x", "n", "s", "l"))


def write_company(value: tuple[str, str, str], style: Style, drawn: Random, noise: float) -> str:
    """Return a company's name: its form written in another way or left out, the trade left out, a slip."""
    proper, trade, forms = value
    ways = forms.split("|") if forms else [""]
    form = ways[0] if drawn.random() > 0.5 * noise + (0.4 if style.short else 0) else drawn.choice(ways)
    if drawn.random() < 0.22 * noise:
        form = ""
    if trade and drawn.random() < 0.06 * noise:
        trade = ""
    if drawn.random() < 0.2 * noise:
        proper = slips.slip(proper, drawn)
    cjk = any("぀" <= letter <= "鿿" or "가" <= letter <= "힣" for letter in proper + trade)
    text = f"{proper}{'' if cjk else ' '}{trade}".strip()
    if drawn.random() < 0.04 * noise:
        text = slips.move_word(text, drawn)
    if drawn.random() < 0.08 * noise:
        text = slips.change_marks(text, drawn)
    if drawn.random() < 0.03 * noise:
        text = slips.split_or_join(text, drawn)
    text = writing.shorten(text, max(style.short, 0.1 * noise), drawn)
    return writing.dress(_with_form(text, form), style, drawn)


def _with_form(text: str, form: str) -> str:
    if not form:
        return text
    if form.startswith("^~"):
        return form[2:] + text
    if form.startswith("^"):
        front, _, behind = form[1:].partition(" S.")
        if behind:
            return f"{front} {text} S.{behind}"
        return f"{form[1:]} «{text}»" if form[1] in "ОАЗИТ" and len(form) > 3 else f"{form[1:]} {text}"
    if form.startswith("~"):
        return text + form[1:]
    return text + form if form.startswith(",") else f"{text} {form}"


def draw_companies(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return companies; a part of them are kin of another by name, form, address or owner."""
    locales = words.draw_locales(drawn)
    made: list[Thing] = []
    while len(made) < count:
        locale = drawn.choice(locales)
        company = draw_company(locale, drawn)
        made.append(company)
        if drawn.random() < kin:
            made += _draw_kin(company, locale, drawn)
    return made[:count]


def draw_company(locale: Locale, drawn: Random) -> Thing:
    """Return a company with all that a register holds."""
    fake = words.open_faker(locale.code, drawn)
    proper, trade = draw_company_name(locale, drawn)
    form = drawn.choice(_FORMS.get(locale.country, _FORMS["US"]))
    form = form.replace("{last}", drawn.choice(words.list_person_names(locale.code)[2]))
    host = "".join(filter(str.isalnum, slips.strip_marks(slips.to_latin(proper)).lower()))
    ending = locale.country.lower() if locale.country != "US" else "com"
    site = f"{host}.{drawn.choice((ending, 'com'))}" if host and host.isascii() else f"{coin(drawn).lower()}.{ending}"
    return {
        "company": (proper, trade, form),
        "address": (words.draw_street(locale.code, fake, drawn), str(drawn.randint(1, 220)), ""),
        "postcode": words.draw_postcode(locale, fake, drawn),
        "town": words.draw_town(locale, fake, drawn),
        "country": locale.country,
        "phone": words.draw_phone(locale, drawn),
        "site": site,
        "email": f"{drawn.choice(('info', 'office', 'contact', 'mail', 'sales'))}@{site}",
        "vat": f"{locale.country}{drawn.randint(10**8, 10**9 - 1)}",
        "trade": trade or "Other",
        "locale": locale.code,
    }


def _draw_kin(company: Thing, locale: Locale, drawn: Random) -> list[Thing]:
    """Return a company that shares the proper name, the trade and form, or the address, and is another one."""
    proper, trade, form = company["company"]
    other = draw_company(locale, drawn)
    new_proper, new_trade, new_form = other["company"]
    way = drawn.choice(("trade", "trade", "successor", "form", "branch", "group"))
    if way == "trade":
        return [other | {"company": (new_proper, trade, form), "trade": company["trade"]}]
    if way == "successor":
        return [other | {key: company[key] for key in ("address", "postcode", "town")}]
    if way == "form" and new_trade and new_trade != trade:
        return [other | {"company": (proper, new_trade, new_form), "town": company["town"]}]
    if way == "branch":
        return [other | {key: company[key] for key in ("company", "trade", "site", "email")}]
    if trade and new_trade != trade and new_trade:
        kept = ("address", "postcode", "town", "site")
        return [other | {key: company[key] for key in kept} | {"company": (proper, new_trade, form)}]
    return []


def change_company(company: Thing, drawn: Random, noise: float) -> Thing:
    """Return a company as another register knows it: moved, with another phone or form."""
    made = dict(company)
    locale = words.make_locale(company["locale"])
    if drawn.random() < 0.15 * noise:
        fake = words.open_faker(locale.code, drawn)
        made["address"] = (words.draw_street(locale.code, fake, drawn), str(drawn.randint(1, 220)), "")
        made["postcode"] = words.draw_postcode(locale, fake, drawn)
    if drawn.random() < 0.2 * noise:
        made["phone"] = words.draw_phone(locale, drawn)
    if drawn.random() < 0.15 * noise:
        made["email"] = f"{drawn.choice(('hello', 'kontakt', 'service', 'admin'))}@{company['site']}"
    return made


_COLUMNS = {
    "company": Column(("company", "name", "firm", "supplier", "firma", "account_name", "vendor"), write_company, 0.0),
    "address": Column(("street", "address", "addr"), writing.write_address),
    "postcode": Column(("zip", "postcode", "plz"), writing.write_code),
    "town": Column(("city", "town", "seat"), writing.write_text),
    "country": Column(("country", "land"), writing.write_plain, weak=True),
    "phone": Column(("phone", "tel"), writing.write_phone, 0.15, weak=True),
    "site": Column(("website", "domain", "url"), writing.write_email, 0.2, weak=True),
    "email": Column(("email", "mail"), writing.write_email, 0.2, weak=True),
    "vat": Column(("vat_id", "tax_number", "register_no"), writing.write_code, 0.3),
    "trade": Column(("industry", "sector"), writing.write_plain, 0.1, weak=True),
}
_LAYOUTS = """
company; company town; company country; company trade country; company address town; company address postcode
town; company postcode town phone; company address postcode town country phone site vat; company site; company
vat town; company town email phone; company trade town country; company address country
"""
COMPANIES = ThingFamily("companies", _COLUMNS, _LAYOUTS, draw_companies, change_company)
