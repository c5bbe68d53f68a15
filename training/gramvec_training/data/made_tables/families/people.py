"""Registers of people: households, twins, fathers and sons, neighbors and namesakes are not the same."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from gramvec_training.data.made_tables import slips, words, writing
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.styles import Style
from gramvec_training.data.made_tables.words import Locale

_HOSTS = (
    "gmail.com",
    "yahoo.com",
    "hotmail.com",
    "gmx.de",
    "web.de",
    "outlook.com",
    "orange.fr",
    "libero.it",
    "wp.pl",
    "mail.ru",
    "example.org",
)
_TITLES = {
    "m": ("Mr", "Mr.", "Dr.", "Prof.", "Herr", "M.", "Sr."),
    "f": ("Mrs", "Ms", "Dr.", "Prof.", "Frau", "Mme", "Sra."),
}
_FEMALE_LAST = (
    ("ru uk bg", "ов", "ова"), ("ru uk bg", "ев", "ева"), ("ru uk", "ин", "ина"), ("ru uk", "ский", "ская"),
    ("cs sk", "ek", "ková"), ("cs sk", "ý", "á"), ("pl", "ski", "ska"), ("pl", "cki", "cka"), ("lt", "as", "ienė"),
    ("el", "ος", "ου"), ("el", "ης", "η"), ("lv", "s", "a"),
)  # fmt: skip
# A first name that differs from another in the ending of the other gender.
_ENDINGS = (("o", "a"), ("us", "a"), ("", "a"), ("e", "a"), ("й", "я"))
EPOCH = date(1930, 1, 1)


class PersonName(NamedTuple):
    """A person's name: of a man ("m") or a woman ("f"), in a language."""

    first: str
    middle: str
    last: str
    title: str
    suffix: str
    gender: str
    language: str


def write_name(name: PersonName, style: Style, drawn: Random, noise: float) -> str:
    """Return a whole name in the order of the table."""
    name = _change_parts(name, drawn, noise)
    joined = name.language in ("ja", "zh", "ko")
    order = style.order if drawn.random() > 0.07 * noise else drawn.choice(("last, first", "last first", "first last"))
    first = f"{name.first} {name.middle}".strip()
    last = f"{name.last} {name.suffix}".strip()
    if joined:
        gap = drawn.choice(("", " ")) if drawn.random() < noise else " " if style.space else ""
        text = f"{name.last}{gap}{name.first}"
    elif order == "last, first":
        text = f"{last}, {first}"
    else:
        text = f"{last} {first}" if order == "last first" else f"{first} {last}"
    if name.title:
        text = f"{name.title} {text}"
    return _finish(text, style, drawn, noise)


def write_first(name: PersonName, style: Style, drawn: Random, noise: float) -> str:
    """Return the first names."""
    name = _change_parts(name, drawn, noise)
    return _finish(f"{name.first} {name.middle}".strip(), style, drawn, noise)


def write_last(name: PersonName, style: Style, drawn: Random, noise: float) -> str:
    """Return the last name."""
    name = _change_parts(name, drawn, noise)
    return _finish(f"{name.last} {name.suffix}".strip(), style, drawn, noise)


def _finish(text: str, style: Style, drawn: Random, noise: float) -> str:
    if drawn.random() < 0.05 * noise:
        text = drawn.choice((slips.change_marks, slips.change_case, slips.split_or_join))(text, drawn)
    return writing.dress(text, style, drawn)


def _change_parts(name: PersonName, drawn: Random, noise: float) -> PersonName:
    """Return a name with initials, short names, titles, slips; another name is `change_person`'s."""
    first, middle, last, title = name.first, name.middle, name.last, name.title
    way = drawn.random() / max(noise, 1e-9)
    short = words.short_names().get(first)
    if short and drawn.random() < 0.25 * noise:
        first = drawn.choice(short)
    elif way < 0.08 and slips.is_cased(first):
        first = f"{first[:1]}{drawn.choice(('.', ''))}"
    elif way < 0.24:
        first = slips.slip_word(first, drawn)
    if middle:
        middle = drawn.choice((middle, f"{middle[:1]}.", "")) if drawn.random() < max(noise, 0.2) else middle
    way = drawn.random() / max(noise, 1e-9)
    if way < 0.17:
        last = slips.slip(last, drawn)
    elif way < 0.2:
        last = slips.change_marks(last, drawn)
    if title:
        title = title if drawn.random() < 0.5 else ""
    suffix = name.suffix if drawn.random() > 0.1 * noise else ""
    return name._replace(first=first, middle=middle, last=last, title=title, suffix=suffix)


def draw_people(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return people; a part of them live with, are named as, or live beside another."""
    locales = words.draw_locales(drawn)
    middles = drawn.random() < 0.3
    people: list[Thing] = []
    while len(people) < count:
        # A draw for each locale, so that the generators of Faker do not cross.
        locale = drawn.choice(locales)
        person = draw_person(locale, drawn, middles=middles)
        people.append(person)
        if drawn.random() < kin:
            people += draw_kin(person, locale, drawn)
    return people[:count]


def draw_person(locale: Locale, drawn: Random, *, middles: bool) -> Thing:
    """Return a person with all that a register holds."""
    fake = words.open_faker(locale.code, drawn)
    men, women, last_names = words.list_person_names(locale.code)
    gender = drawn.choice("mf")
    first_names = men if gender == "m" else women
    last = drawn.choice(last_names)
    if locale.code in ("es_ES", "es_MX", "pt_BR", "pt_PT") and drawn.random() < 0.5:
        last = f"{last} {drawn.choice(last_names)}"
    language = locale.code[:2]
    name = PersonName(
        _draw_first(first_names, drawn), drawn.choice(first_names) if middles and drawn.random() < 0.5 else "",
        write_last_name(last, gender, language), drawn.choice(_TITLES[gender]) if drawn.random() < 0.06 else "",
        "", gender, language,
    )  # fmt: skip
    return _fill(
        {
            "person": name,
            "address": (words.draw_street(locale.code, fake, drawn), _draw_number(drawn), _draw_flat(drawn)),
            "postcode": words.draw_postcode(locale, fake, drawn),
            "town": words.draw_town(locale, fake, drawn),
            "country": locale.country,
            "born": draw_birthday(drawn),
            "phone": words.draw_phone(locale, drawn),
            "employer": str(fake.company()),
        },
        drawn,
    )


def _draw_first(first_names: tuple[str, ...], drawn: Random) -> str:
    return (
        drawn.choice(first_names[: max(10, len(first_names) // 4)])
        if drawn.random() < 0.4
        else drawn.choice(first_names)
    )


def _fill(person: Thing, drawn: Random) -> Thing:
    """Return a person with what follows from the rest: mail, numbers, parts of the name."""
    name: PersonName = person["person"]
    person["first"] = person["last"] = name
    person["email"] = write_mail(name, drawn)
    person["number"] = f"{drawn.randint(1000, 9_999_999)}"
    person["id"] = f"{drawn.choice('ABCXPK')}{drawn.randint(100000, 999999)}-{drawn.randint(10, 99)}"
    person["gender"] = name.gender.upper()
    return person


def write_mail(name: PersonName, drawn: Random) -> str:
    """Return an address of mail that comes from a name, or from nothing."""
    first, last = (
        "".join(filter(str.isalnum, slips.strip_marks(slips.to_latin(part)).lower()))
        for part in (name.first, name.last)
    )
    if not (first + last).isascii() or not first or not last or drawn.random() < 0.1:
        first, last = (
            drawn.choice(("info", "sunny", "blue", "mail", "me")),
            drawn.choice(("cat", "star", "fox", "sea", "tree")),
        )
        return f"{first}{last}{drawn.randint(1, 9999)}@{drawn.choice(_HOSTS)}"
    form = drawn.choice(("{0}.{1}", "{0}{1}", "{2}{1}", "{1}.{0}", "{0}{3}", "{0}_{1}{3}"))
    return f"{form.format(first, last, first[0], drawn.randint(1, 99))}@{drawn.choice(_HOSTS)}"


def draw_birthday(drawn: Random, *, since: date = EPOCH, days: int = 28_000) -> date:
    """Return a day."""
    return since + timedelta(days=drawn.randrange(days))


def _draw_number(drawn: Random) -> str:
    return f"{drawn.randint(1, drawn.choice((20, 90, 400)))}{drawn.choice('abcd') if drawn.random() < 0.08 else ''}"


def _draw_flat(drawn: Random) -> str:
    if drawn.random() > 0.2:
        return ""
    form = drawn.choice(("Apt {0}", "Flat {0}{1}", "{2}. OG", "#{0}", "Unit {0}{1}"))
    return form.format(drawn.randint(1, 60), drawn.choice("ABCD"), drawn.randint(1, 6))


def write_last_name(last: str, gender: str, language: str) -> str:
    """Return a last name as a woman has it where the language tells."""
    if gender == "f":
        for languages, male, female in _FEMALE_LAST:
            if language in languages.split() and last.endswith(male):
                return last[: len(last) - len(male)] + female
    return last


def draw_kin(person: Thing, locale: Locale, drawn: Random) -> list[Thing]:
    """Return other people of the same household, name or house."""
    way = drawn.choice(
        ("household", "household", "household", "twin", "junior", "ending", "neighbor", "namesake", "moved out")
    )
    other = draw_person(locale, drawn, middles=False)
    name: PersonName = person["person"]
    new: PersonName = other["person"]
    if way == "household":
        members = [
            _at_home(person, draw_person(locale, drawn, middles=False), drawn) for _ in range(drawn.randint(1, 3))
        ]
        return [member for member in members if member["first"].first != name.first]
    if way == "twin":
        other = _at_home(person, other, drawn) | {"born": person["born"]}
        return [other] if other["first"].first != name.first else []
    if way == "junior":
        years = drawn.randint(20, 38)
        born = person["born"].replace(day=1) + timedelta(days=365 * years + drawn.randint(0, 364))
        suffix = drawn.choice(("Jr", "Jr.", "II", "III", "jun.", "Junior"))
        return [_fill({**person, "born": born, "person": name._replace(suffix=suffix)}, drawn)]
    if way == "ending":
        first = find_other_ending(name.first)
        if not first:
            return []
        gender = "f" if name.gender == "m" else "m"
        changed = name._replace(
            first=first, gender=gender, last=write_last_name(name.last, gender, name.language), title=""
        )
        return [_fill({**person, "born": other["born"], "person": changed}, drawn)]
    if way == "neighbor":
        street, number, flat = person["address"]
        flat = _other_flat(flat, drawn)
        return [other | {name: person[name] for name in ("postcode", "town")} | {"address": (street, number, flat)}]
    if way == "namesake":
        return [_fill(other | {"person": new._replace(first=name.first, last=name.last, gender=name.gender)}, drawn)]
    # Of one family in another place.
    return [_fill(other | {"person": new._replace(last=write_last_name(name.last, new.gender, name.language))}, drawn)]


def _at_home(person: Thing, other: Thing, drawn: Random) -> Thing:
    name: PersonName = person["person"]
    new: PersonName = other["person"]
    shared = ["address", "postcode", "town"] + ["phone"] * (drawn.random() < 0.5)
    made = _fill(
        other
        | {key: person[key] for key in shared}
        | {"person": new._replace(last=write_last_name(name.last, new.gender, name.language))},
        drawn,
    )
    return made | {"email": person["email"]} if drawn.random() < 0.1 else made


def find_other_ending(first: str) -> str:
    """Return a first name with the ending of the other gender, or "" where it has none."""
    for male, female in _ENDINGS:
        if first.endswith(female) and male:
            return first[: len(first) - len(female)] + male
        if male and first.endswith(male):
            return first[: len(first) - len(male)] + female
    return ""


def _other_flat(flat: str, drawn: Random) -> str:
    if flat and flat[-1] in "ABCD":
        return flat[:-1] + drawn.choice([letter for letter in "ABCD" if letter != flat[-1]])
    return f"Apt {drawn.randint(61, 90)}"


def change_customer(person: Thing, drawn: Random, noise: float) -> Thing:
    """Return a customer as another list knows them: a fifth has moved, whatever else differs."""
    made = change_person(person, drawn, min(noise, 0.4))
    return _move(made, drawn) if drawn.random() < 0.2 else made


def _move(person: Thing, drawn: Random) -> Thing:
    locale = _find_locale(person)
    fake = words.open_faker(locale.code, drawn)
    return person | {
        "address": (words.draw_street(locale.code, fake, drawn), _draw_number(drawn), _draw_flat(drawn)),
        "postcode": words.draw_postcode(locale, fake, drawn),
        "town": words.draw_town(locale, fake, drawn),
    }


def change_person(person: Thing, drawn: Random, noise: float) -> Thing:
    """Return a person as another register knows them: moved, married, with another phone and address of mail."""
    made = dict(person)
    name: PersonName = person["person"]
    locale = _find_locale(person)
    if drawn.random() < 0.3 * noise:
        fake = words.open_faker(locale.code, drawn)
        made["address"] = (words.draw_street(locale.code, fake, drawn), _draw_number(drawn), _draw_flat(drawn))
        if drawn.random() < 0.7:
            made["postcode"], made["town"] = (
                words.draw_postcode(locale, fake, drawn),
                words.draw_town(locale, fake, drawn),
            )
    if name.gender == "f" and drawn.random() < 0.12 * noise:
        last = write_last_name(drawn.choice(words.list_person_names(locale.code)[2]), "f", name.language)
        made["person"] = name._replace(last=f"{name.last}-{last}" if drawn.random() < 0.25 else last)
        made["first"] = made["last"] = made["person"]
    if drawn.random() < 0.3 * noise:
        made["phone"] = words.draw_phone(locale, drawn)
    if drawn.random() < 0.25 * noise:
        made["email"] = write_mail(made["person"], drawn)
    if drawn.random() < 0.4 * noise:
        made["employer"] = None
    return made


def _find_locale(person: Thing) -> Locale:
    language = person["person"].language
    for code, country in words.LOCALES.items():
        if code[:2] == language and country == person["country"]:
            return words.make_locale(code)
    return words.make_locale("en_US")


_COLUMNS = {
    "person": Column(("name", "customer", "full_name", "contact", "Name", "kunde", "nom"), write_name, 0.0),
    "first": Column(("first_name", "given", "vorname", "fname", "prenom"), write_first, 0.03),
    "last": Column(("last_name", "surname", "nachname", "lname", "apellido"), write_last, 0.02),
    "address": Column(("street", "address", "addr", "strasse", "line1"), writing.write_address),
    "postcode": Column(("zip", "postcode", "plz", "postal_code"), writing.write_code),
    "town": Column(("city", "town", "ort", "ville", "ciudad"), writing.write_text),
    "country": Column(("country", "land", "nation"), writing.write_plain, weak=True),
    "born": Column(("dob", "birthday", "birth_date", "geboren", "date_of_birth"), writing.write_date),
    "phone": Column(("phone", "tel", "telephone", "mobile", "telefon"), writing.write_phone, 0.15),
    "email": Column(("email", "mail", "e_mail"), writing.write_email, 0.15),
    "employer": Column(("employer", "company", "firma"), writing.write_text, 0.3, weak=True),
    "id": Column(("ssn", "national_id", "insurance_no", "passport"), writing.write_code, 0.2),
    "gender": Column(("sex", "gender"), writing.write_plain, 0.05, weak=True),
}
_LAYOUTS = """
person; person town; person born; person email; person phone; person country; last first gender born; person
gender country; person address town; person address postcode town; person born town; person address postcode
town email phone; person address postcode town phone; first last born; first last address; first last town;
first last address postcode town born; first last email phone; last first address town country phone email;
person employer town; first last gender born address postcode town id; person email employer phone; person
address postcode town country email; person born id; person address email phone; person phone email address town
"""
PEOPLE = ThingFamily("people", _COLUMNS, _LAYOUTS, draw_people, change_person)
# Lists of customers, with all columns that could tell who one is, households, and many who have moved.
CUSTOMERS = ThingFamily(
    "customers",
    _COLUMNS,
    """
person address postcode town email phone; person address postcode town email phone; first last address postcode town
email phone; person address email phone; person address postcode town phone email; last first born address postcode
town phone email; person address town email
""",
    draw_people,
    change_customer,
    noises=(0.2, 0.4, 0.4, 0.7),
    overlaps=(0.1, 0.3, 0.5, 0.5, 0.8),
    kins=(0.3, 0.5, 0.5),
)
