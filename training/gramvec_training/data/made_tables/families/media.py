"""Songs, books and drinks: another album, mix, edition, volume or vintage is another one."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from random import Random

from gramvec_training.data.made_tables import words, writing
from gramvec_training.data.made_tables.families import people
from gramvec_training.data.made_tables.families.companies import coin
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.titles import Part, Title, measure, part, write_title

_WORDS = LEXICON["media"]
_LANGUAGES = ("en_US", "en_US", "en_GB", "es_ES", "de_DE", "fr_FR", "it_IT", "pt_BR", "ja_JP", "ru_RU", "ko_KR")


def draw_phrase(language: str, drawn: Random) -> str:
    """Return some words that may be a title."""
    known = _WORDS["phrases"].get(language, _WORDS["phrases"]["en"])
    form = drawn.choice(known["forms"])
    adjective, noun, other, verb = (
        drawn.choice(known[name].split()) for name in ("adjectives", "nouns", "nouns", "verbs")
    )
    return str(form.format(a=adjective, n=noun, n2=other, v=verb))


def draw_artist(locale: str, drawn: Random) -> str:
    """Return a person or a band."""
    men, women, last = words.list_person_names(locale)
    if drawn.random() < 0.6:
        gap = "" if locale in ("ja_JP", "ko_KR") else " "
        pair = (drawn.choice(men + women), drawn.choice(last))
        return gap.join(reversed(pair) if not gap else pair)
    return drawn.choice(("The {}s", "{}", "DJ {}", "{} Brothers", "{} Orchestra", "Los {}")).format(coin(drawn))


def draw_songs(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return songs; some are on two albums, in two mixes, or sung by two."""
    locale = drawn.choice(_LANGUAGES)
    artists = [draw_artist(locale, drawn) for _ in range(max(8, count // 12))]
    genres = _WORDS["genres"]
    made: list[Thing] = []
    while len(made) < count:
        artist = drawn.choice(artists)
        album, genre = draw_phrase(locale[:2], drawn), drawn.choice(genres)
        day = date(drawn.randint(1965, 2023), drawn.randint(1, 12), drawn.randint(1, 28))
        label = f"{day.year} {coin(drawn)} {drawn.choice(('Records', 'Music', 'Entertainment', 'Ltd'))}"
        for _ in range(drawn.choice((1, 1, 2, 4, 9))):
            song = _song((part(draw_phrase(locale[:2], drawn)),), artist, album, genre, day, label, drawn)
            made.append(song)
            if drawn.random() < kin:
                made.append(_vary_song(song, artists, locale, genres, drawn))
    return made[:count]


def _song(name: tuple[Part, ...], artist: str, album: str, genre: str, day: date, label: str, drawn: Random) -> Thing:
    return {
        "song": Title(name),
        "artist": artist,
        "album": Title((part(album),)),
        "genre": genre,
        "time": f"{drawn.randint(2, 6)}:{drawn.randint(0, 59):02d}",
        "day": day,
        "label": Title((part(f"{label}|© {label}|(C) {label}"),)),
        "price": drawn.choice((Decimal("0.99"), Decimal("1.29"), Decimal("0.69"))),
        "both": Title((*name, part(f"{artist}|by {artist}|- {artist}"))),
        "parts": (name, artist, album, genre, day, label),
    }


def _vary_song(song: Thing, artists: list[str], locale: str, genres: list[str], drawn: Random) -> Thing:
    name, artist, album, genre, day, label = song["parts"]
    way = drawn.choice(("mix", "mix", "album", "artist", "guest"))
    if way == "mix":
        name = (*name, part(drawn.choice(_WORDS["mixes"])))
    elif way == "album":
        album = f"{album} {drawn.choice(('(Deluxe Edition)', 'II', '- Live', '(Remastered)', 'Greatest Hits'))}"
        day = day.replace(year=day.year + drawn.randint(1, 9))
    elif way == "artist":
        artist, album = drawn.choice(artists), draw_phrase(locale[:2], drawn)
    else:
        name = (*name, part(f"(feat. {drawn.choice(artists)})|[feat. {drawn.choice(artists)}]"))
    return _song(name, artist, album, drawn.choice((genre, drawn.choice(genres))), day, label, drawn)


def change_song(song: Thing, drawn: Random, noise: float) -> Thing:
    """Return a song as another shop has it: some seconds longer, at another price, of another genre."""
    made = dict(song)
    if drawn.random() < 0.4 * noise:
        minutes, seconds = song["time"].split(":")
        made["time"] = f"{minutes}:{min(59, int(seconds) + drawn.randint(1, 2)):02d}"
    if drawn.random() < 0.4 * noise:
        made["price"] = drawn.choice((Decimal("0.99"), Decimal("1.29"), Decimal("8.99")))
    if drawn.random() < 0.3 * noise:
        made["genre"] = f"{song['genre']}, Music"
    return made


_SONG_COLUMNS = {
    "song": Column(("song", "title", "track"), write_title, 0.0),
    "both": Column(("title", "track"), write_title, 0.0),
    "artist": Column(("artist", "performer", "by"), writing.write_text, 0.05),
    "album": Column(("album", "release"), write_title, 0.08),
    "genre": Column(("genre", "style"), writing.write_plain, 0.1, weak=True),
    "time": Column(("time", "length"), writing.write_code, 0.08, weak=True),
    "day": Column(("released", "date"), writing.write_date, 0.1),
    "label": Column(("copyright", "label"), write_title, 0.15, weak=True),
    "price": Column(("price",), writing.write_amount, 0.1, weak=True),
}
_SONG_LAYOUTS = """
both; song artist; song artist album; song artist album genre price label time day; song artist time; song
album; song artist day
"""
SONGS = ThingFamily("songs", _SONG_COLUMNS, _SONG_LAYOUTS, draw_songs, change_song)


def draw_books(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return books; volumes, editions and years are others."""
    locale = drawn.choice(_LANGUAGES)
    presses = [
        f"{coin(drawn)} {drawn.choice(('Press', 'Verlag', 'Books', 'Éditions', 'Publishing'))}" for _ in range(12)
    ]
    made: list[Thing] = []
    while len(made) < count:
        men, women, last = words.list_person_names(locale)
        author = people.PersonName(drawn.choice(men + women), "", drawn.choice(last), "", "", "m", locale[:2])
        name = [part(draw_phrase(locale[:2], drawn))]
        if drawn.random() < 0.3:
            name.append(part(f": {draw_phrase(locale[:2], drawn)}", 0.3))
        press, year = drawn.choice(presses), drawn.randint(1950, 2024)
        made.append(_book(name, author, press, year, drawn))
        while drawn.random() < 0.1 + kin:
            new = list(name)
            way = drawn.choice(("volume", "volume", "edition", "author"))
            if way == "volume":
                number = drawn.randint(1, 12)
                roman = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")[number - 1]
                new.append(part(f"vol. {number}|volume {number}|Bd. {number}|vol. {roman}|{number}"))
            elif way == "edition":
                number = drawn.randint(2, 9)
                end = {2: "nd", 3: "rd"}.get(number, "th")
                new.append(part(f"{number}{end} edition|{number}{end} ed.|({number}. Aufl.)|{number}/e"))
            else:
                new = [part(draw_phrase(locale[:2], drawn))]
            made.append(_book(new, author, press, year + drawn.randint(0, 8), drawn))
    return made[:count]


def _book(name: list[Part], author: people.PersonName, press: str, year: int, drawn: Random) -> Thing:
    return {
        "title": Title(tuple(name)),
        "author": author,
        "press": press,
        "year": year,
        "isbn": f"978-{drawn.randint(10**9, 10**10 - 1)}",
        "binding": drawn.choice(("hardcover", "paperback", "ebook")),
        "pages": str(drawn.randint(60, 900)),
    }


def change_book(book: Thing, drawn: Random, noise: float) -> Thing:
    """Return a book as another catalog has it: without its number, a page more."""
    made = dict(book)
    if drawn.random() < 0.25 * noise:
        made["isbn"] = None
    if drawn.random() < 0.3 * noise:
        made["pages"] = str(int(book["pages"]) + drawn.randint(1, 12))
    return made


_BOOK_COLUMNS = {
    "title": Column(("title", "book", "name"), write_title, 0.0),
    "author": Column(("author", "by", "creator"), people.write_name, 0.05),
    "press": Column(("publisher", "press"), writing.write_text, 0.1, weak=True),
    "year": Column(("year", "published"), writing.write_year, 0.08),
    "isbn": Column(("isbn", "ean"), writing.write_code, 0.2, weak=True),
    "binding": Column(("binding", "format"), writing.write_plain, 0.1, weak=True),
    "pages": Column(("pages", "extent"), writing.write_plain, 0.1, weak=True),
}
_BOOK_LAYOUTS = """
title; title author; title author year; title author press year; title author press year isbn pages; title year;
title isbn author
"""
BOOKS = ThingFamily("books", _BOOK_COLUMNS, _BOOK_LAYOUTS, draw_books, change_book)


def draw_drinks(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return beers and wines; another vintage, strength or brew of one maker is another one."""
    wine = drawn.random() < 0.5
    locale = drawn.choice(("en_US", "de_DE", "fr_FR", "it_IT", "es_ES", "cs_CZ", "nl_NL"))
    country = words.LOCALES[locale]
    makers = []
    for _ in range(max(6, count // 6)):
        root = drawn.choice((drawn.choice(words.list_person_names(locale)[2]), drawn.choice(words.list_towns(country))))
        makers.append(drawn.choice(_WORDS["wineries" if wine else "breweries"]).format(root))
    made: list[Thing] = []
    while len(made) < count:
        maker = drawn.choice(makers)
        style = drawn.choice(_WORDS["grapes" if wine else "beers"])
        name = [part(draw_phrase("en" if not wine else locale[:2], drawn))] if drawn.random() < 0.6 else []
        year = drawn.randint(1990, 2022)
        strength = Decimal(drawn.randint(110, 150) if wine else drawn.randint(38, 120)) / 10
        made.append(_drink(maker, name, style, year, strength, wine=wine, drawn=drawn))
        while drawn.random() < 0.15 + kin:
            way = drawn.choice(("year", "style", "both") if wine else ("style", "style", "both"))
            new_style = style if way == "year" else drawn.choice(_WORDS["grapes" if wine else "beers"])
            new_year = year if way == "style" else drawn.randint(1990, 2022)
            other = strength + Decimal(drawn.randint(-10, 20)) / 10
            made.append(_drink(maker, name, new_style, new_year, other, wine=wine, drawn=drawn))
    return made[:count]


def _drink(
    maker: str, name: list[Part], style: str, year: int, strength: Decimal, *, wine: bool, drawn: Random
) -> Thing:
    vintage = [part(str(year))] if wine else []
    size = measure(drawn.choice(("0.75", "0.375", "1.5") if wine else ("0.33", "0.5", "0.355")), "l|L|Liter", 0.3)
    return {
        "drink": Title((*name, part(style), *vintage)),
        "full": Title((part(maker), *name, part(style), *vintage, size)),
        "maker": maker,
        "style": Title((part(style),)),
        "year": year if wine else None,
        "abv": (strength, drawn.choice(("%", "%", "% vol"))),
        "country": drawn.choice(("US", "DE", "FR", "IT", "ES")),
    }


def change_drink(drink: Thing, drawn: Random, noise: float) -> Thing:
    """Return a drink as another list has it: a tenth stronger."""
    if drawn.random() < 0.1 * noise:
        return drink | {"abv": (drink["abv"][0] + Decimal("0.1"), drink["abv"][1])}
    return drink


_DRINK_COLUMNS = {
    "drink": Column(("name", "beer", "wine", "beverage"), write_title, 0.0),
    "full": Column(("name", "item", "product"), write_title, 0.0),
    "maker": Column(("brewery", "producer", "winery"), writing.write_text, 0.04),
    "style": Column(("style", "type", "grape"), write_title, 0.1),
    "year": Column(("vintage", "year"), writing.write_year, 0.05),
    "abv": Column(("abv", "alcohol", "strength"), writing.write_quantity, 0.15, weak=True),
    "country": Column(("country", "origin"), writing.write_plain, 0.2, weak=True),
}
_DRINK_LAYOUTS = """
full; drink maker; drink maker style abv; drink maker style; full abv; full style country; drink maker country
abv
"""
DRINKS = ThingFamily("drinks", _DRINK_COLUMNS, _DRINK_LAYOUTS, draw_drinks, change_drink)


def draw_artists(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return artists with their years; fathers and sons, and those of one year and country, are others."""
    made: list[Thing] = []
    locales = words.draw_locales(drawn)
    schools = drawn.sample(_WORDS["schools"], drawn.randint(3, len(_WORDS["schools"])))
    while len(made) < count:
        locale = drawn.choice(locales)
        men, women, last = words.list_person_names(locale.code)
        name = people.PersonName(drawn.choice(men + women), "", drawn.choice(last), "", "", "m", locale.code[:2])
        born = drawn.randint(1500, 1990)
        made.append(_artist(name, born, locale.country, drawn.choice(schools), drawn))
        if drawn.random() < kin:
            way = drawn.choice(("younger", "brother", "namesake"))
            if way == "younger":
                other = name._replace(suffix=drawn.choice(("the Younger", "II", "d. J.", "Jr.")))
                made.append(_artist(other, born + drawn.randint(20, 40), locale.country, drawn.choice(schools), drawn))
            elif way == "brother":
                other = name._replace(first=drawn.choice(men + women))
                made.append(_artist(other, born + drawn.randint(1, 12), locale.country, drawn.choice(schools), drawn))
            else:
                made.append(_artist(name, drawn.randint(1500, 1990), locale.country, drawn.choice(schools), drawn))
    return made[:count]


def _artist(name: people.PersonName, born: int, country: str, school: str, drawn: Random) -> Thing:
    died = born + drawn.randint(28, 92)
    years = f"{born}-{died}|{born}–{died}|({born} - {died})" if died < 2024 else f"born {born}|b. {born}|{born}-"
    return {
        "artist": name,
        "born": born,
        "died": died if died < 2024 else None,
        "years": Title((part(years),)),
        "country": country,
        "school": school,
        "medium": drawn.choice(("painter", "sculptor", "printmaker", "photographer", "draftsman")),
    }


def change_artist(artist: Thing, drawn: Random, noise: float) -> Thing:
    """Return an artist as another museum has them: of another trade."""
    if drawn.random() < 0.2 * noise:
        return artist | {"medium": drawn.choice(("painter", "artist", "graphic artist"))}
    return artist


_ARTIST_COLUMNS = {
    "artist": Column(("artist", "name", "creator"), people.write_name, 0.0),
    "born": Column(("born", "birth_year"), writing.write_year, 0.05),
    "died": Column(("died", "death_year"), writing.write_year, 0.1),
    "years": Column(("years", "dates"), write_title, 0.05),
    "country": Column(("nationality", "country"), writing.write_plain, 0.08, weak=True),
    "school": Column(("school", "movement"), writing.write_plain, 0.1, weak=True),
    "medium": Column(("role", "medium"), writing.write_plain, 0.1, weak=True),
}
_ARTIST_LAYOUTS = """
artist; artist years; artist born died; artist country; artist born country; artist born died country school
medium; artist years country
"""
ARTISTS = ThingFamily("artists", _ARTIST_COLUMNS, _ARTIST_LAYOUTS, draw_artists, change_artist)
