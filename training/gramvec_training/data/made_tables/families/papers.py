"""Articles: much of a title is shared by very many; part II, another compound or another year is another article."""

from __future__ import annotations

from random import Random

from gramvec_training.data.made_tables import words, writing
from gramvec_training.data.made_tables.families import people
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.styles import Style
from gramvec_training.data.made_tables.titles import Part, Title, part, write_title

_WORDS = LEXICON["papers"]
_SPECIES = LEXICON["species"]
_AUTHORS = ("en_US", "en_GB", "de_DE", "fr_FR", "es_ES", "it_IT", "nl_NL", "pl_PL", "tr_TR", "id_ID", "pt_BR")
_HOSTS = ("x.jac", "s123", "chem", "med", "j.is", "a")


def draw_compound(drawn: Random) -> str:
    """Return the name of a chemical compound."""
    shown = drawn.sample(_WORDS["substituents"].split(), drawn.randint(1, 3))
    places = sorted(drawn.sample(range(1, 9), len(shown)))
    head = "-".join(
        f"{place}-({substituent})" if substituent[0].isdigit() else f"{place}-{substituent}"
        for place, substituent in zip(places, shown, strict=True)
    )
    ester = f"{drawn.choice(('ethyl', 'methyl', 'benzyl'))} " if drawn.random() < 0.3 else ""
    ring = drawn.choice(("", "", f"-{drawn.randint(1, 4)}H-"))
    return f"{ester}{head}{ring}{drawn.choice(_WORDS['parents'].split())}{drawn.choice(_WORDS['suffixes'])}"


def draw_species(drawn: Random) -> str:
    """Return a Latin name of a species that is none."""
    genus = f"{drawn.choice(_SPECIES['starts'].split())}{drawn.choice(_SPECIES['ends'].split())}".capitalize()
    return f"{genus} {drawn.choice(_SPECIES['epithets'].split())}"


def draw_title(templates: list[str], drawn: Random) -> str:
    """Return a title of one of the templates, its slots filled."""
    countries = sorted(set(words.LOCALES.values()))
    first, second = drawn.sample(_WORDS["diseases"], 2)
    return drawn.choice(templates).format(
        c=draw_compound(drawn), m=drawn.choice(_WORDS["materials"]), d=first, d2=second, o=draw_species(drawn),
        p=drawn.choice(words.list_towns(drawn.choice(countries))[:200]), t=drawn.choice(_WORDS["topics"]),
        w=drawn.choice(_WORDS["ways"]), n=drawn.choice(_WORDS["ordinals"]).split("|")[0], y=drawn.randint(1960, 2024),
    )  # fmt: skip


def write_authors(value: list[people.PersonName], style: Style, drawn: Random, noise: float) -> str:
    """Return authors: initials or names, in another order, the later ones left out."""
    short = style.habit % 2 == 0
    shown = []
    for name in value:
        first = (
            " ".join(f"{word[0]}." for word in name.first.split())
            if short or drawn.random() < 0.1 * noise
            else name.first
        )
        last = name.last if drawn.random() > 0.06 * noise else writing.write_text(name.last, style, drawn, 1.0)
        shown.append(f"{last}, {first}" if style.order != "first last" else f"{first} {last}")
    if len(shown) > 1 and drawn.random() < 0.15 * noise:
        shown = [f"{shown[0]} et al."] if drawn.random() < 0.5 else shown[:-1]
    gap = "; " if style.order != "first last" else ", "
    return writing.dress(gap.join(shown), style._replace(limit=0), drawn)


def draw_papers(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return articles of one or two languages; of some templates there are very many."""
    language = drawn.choice(("en", "en", "en", "en", *_WORDS["templates"]))
    known = _WORDS["templates"][language]
    templates = drawn.sample(known, drawn.randint(2, len(known)))
    if drawn.random() < 0.5:
        # A journal that mostly has one sort of article.
        templates += [drawn.choice(templates)] * len(templates) * 2
    years = sorted(drawn.sample(range(1985, 2025), 2))
    venues = drawn.sample(_WORDS["venues"], drawn.randint(1, 8))
    made: list[Thing] = []
    while len(made) < count:
        title = draw_title(templates, drawn)
        locale = drawn.choice(_AUTHORS)
        authors = [_draw_author(locale, drawn) for _ in range(drawn.choice((1, 2, 2, 3, 3, 4, 6)))]
        paper = _fill(title, authors, drawn.choice(venues), drawn.randint(*years), drawn)
        made.append(paper)
        if drawn.random() < kin:
            made.append(_draw_kin(paper, templates, venues, years, drawn))
    return made[:count]


def _draw_author(locale: str, drawn: Random) -> people.PersonName:
    men, women, last = words.list_person_names(locale)
    first = drawn.choice(men + women)
    if drawn.random() < 0.3:
        first = f"{first} {drawn.choice('ABCDEFGHJKLMPRST')}"
    return people.PersonName(first, "", drawn.choice(last), "", "", "m", locale[:2])


def _fill(title: str, authors: list[people.PersonName], venue: str, year: int, drawn: Random) -> Thing:
    page = drawn.randint(1, 1800)
    return {
        "title": Title((Part((title,)),)),
        "text": title,
        "authors": authors,
        "venue": Title((part(venue),)),
        "kind": venue,
        "year": year,
        "pages": f"{page}-{page + drawn.randint(2, 30)}",
        "doi": f"10.{drawn.randint(1000, 9999)}/{drawn.choice(_HOSTS)}.{year}.{drawn.randint(1000, 99999)}",
    }


def _draw_kin(paper: Thing, templates: list[str], venues: list[str], years: list[int], drawn: Random) -> Thing:
    """Return another article of the same authors, a second part, or one of the same title in another year."""
    way = drawn.choice(("authors", "authors", "part", "part", "part", "year"))
    authors = list(paper["authors"])
    venue = paper["kind"] if drawn.random() < 0.6 else drawn.choice(venues)
    year = drawn.randint(*years)
    if way == "authors":
        return _fill(draw_title(templates, drawn), authors, venue, year, drawn)
    if way == "part":
        end = drawn.choice(
            (" II", ". Part 2", ": an update", " (extended abstract)", ". III", ": reply", ": corrigendum")
        )
        return _fill(paper["text"] + end, authors, venue, year, drawn)
    drawn.shuffle(authors)
    return _fill(
        paper["text"], authors[: max(1, len(authors) - 1)], venue, paper["year"] + drawn.choice((-7, -4, 4, 6)), drawn
    )


def change_paper(paper: Thing, drawn: Random, noise: float) -> Thing:
    """Return an article as another index has it: printed the year after, without its number."""
    made = dict(paper)
    if drawn.random() < 0.1 * noise:
        made["year"] = paper["year"] + 1
    if drawn.random() < 0.4 * noise:
        made["doi"] = None
    return made


_COLUMNS = {
    "title": Column(("title", "name", "article"), write_title, 0.0),
    "authors": Column(("authors", "author", "by"), write_authors, 0.08),
    "venue": Column(("venue", "journal", "source"), write_title, 0.1, weak=True),
    "year": Column(("year", "date", "published"), writing.write_year, 0.08),
    "pages": Column(("pages", "pp"), writing.write_code, 0.2, weak=True),
    "doi": Column(("doi", "id"), writing.write_code, 0.3, weak=True),
}
_LAYOUTS = """
title; title; title year; title authors; title authors year; title authors venue year; title venue year;
title authors venue year pages;
title venue; title authors venue year pages doi; authors title year
"""
PAPERS = ThingFamily("papers", _COLUMNS, _LAYOUTS, draw_papers, change_paper)


def draw_species_list(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return species with who described them; those of one genus share half of their name."""
    made: list[Thing] = []
    orders = [f"{drawn.choice(_SPECIES['starts'].split())}ptera".capitalize() for _ in range(6)]
    epithets = _SPECIES["epithets"].split()
    while len(made) < count:
        name = draw_species(drawn)
        order = drawn.choice(orders)
        for _ in range(1 if drawn.random() > 0.3 + kin else drawn.randint(2, 8)):
            author = drawn.choice(words.list_person_names(drawn.choice(_AUTHORS))[2])
            made.append(
                {
                    "species": Title(
                        (part(f"{name}|{name[0]}. {name.split()[1]}" if drawn.random() < 0.03 else name),)
                    ),
                    "full": Title((part(name), part(f"{author}, {drawn.randint(1758, 2020)}", 0.2))),
                    "author": author,
                    "year": drawn.randint(1758, 2020),
                    "order": order,
                    "family": f"{name.split()[0][:-2]}{_SPECIES['family']}",
                    "country": drawn.choice(sorted(set(words.LOCALES.values()))),
                }
            )
            name = f"{name.split()[0]} {drawn.choice(epithets)}"
    return made[:count]


def change_species(thing: Thing, drawn: Random, noise: float) -> Thing:
    """Return a species as it is."""
    return thing


_SPECIES_COLUMNS = {
    "species": Column(("species", "scientificName", "taxon"), write_title, 0.0),
    "full": Column(("name", "scientific_name"), write_title, 0.0),
    "author": Column(("author", "authority"), writing.write_text, 0.15, weak=True),
    "year": Column(("year",), writing.write_year, 0.15),
    "order": Column(("order",), writing.write_plain, 0.05, weak=True),
    "family": Column(("family",), writing.write_plain, 0.05, weak=True),
    "country": Column(("country",), writing.write_plain, 0.1, weak=True),
}
_SPECIES_LAYOUTS = """
species; species; full; species author; species author year; species family; species order family country; full
order country
"""
SPECIES = ThingFamily("species", _SPECIES_COLUMNS, _SPECIES_LAYOUTS, draw_species_list, change_species)
