"""Two large tables of people, matched: CPU seconds, peak memory, and how many people are found.

    python -m benchmarks.large [ROWS] [--dedupe] [--engine ray|spark]

ROWS people a table, of six columns. Half of the people of the right table are in the left one, too, and are written
with a slip here and there: a letter wrong, an initial, a house number that is missing, another street after a move, a
day and a month that changed places. Everyone else has relatives and namesakes. The same rows have the same bytes on any
machine. The command runs as a user runs it, in a process of its own; of one on an engine the driver alone is measured.
"""

from __future__ import annotations

import csv
import random
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from subprocess import Popen

import click

COLUMNS = ("first", "last", "street", "town", "postcode", "born")
_BEGIN = (
    "b", "br", "d", "f", "fr", "g", "gr", "h", "j", "k", "kl", "l", "m", "n", "p", "r", "s", "sch", "st", "t", "v", "w",
    "z",
)  # fmt: skip
_MIDDLE = ["a", "e", "i", "o", "u", "au", "ei", "ie", "oe"]
_END = ["ck", "ll", "nn", "r", "rt", "s", "st", "m", "ng", "ld"]
_STREETS = ("street", "road", "lane", "avenue", "way", "close")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

Person = tuple[str, ...]


def make_words(drawn: random.Random, count: int) -> list[str]:
    """Return different words of one or two syllables, and an ending."""
    syllables = [begin + middle for begin, middle in product(_BEGIN, _MIDDLE)]
    words: dict[str, None] = {}
    while len(words) < count:
        syllable = "".join(drawn.choice(syllables) for _ in range(drawn.choice((1, 2, 2))))
        words.setdefault((syllable + drawn.choice(_END)).capitalize())
    return list(words)


def draw_people(drawn: random.Random, count: int) -> Iterator[Person]:
    """Yield people: the commoner a name is, the more share it, and one in ten lives with another of the same name."""
    firsts, lasts, streets, towns = (make_words(drawn, size) for size in (600, 40_000, 20_000, 2_000))
    before: Person | None = None
    for _ in range(count):
        first = firsts[int(len(firsts) * drawn.random() ** 2)]
        born = f"{drawn.randint(1930, 2010)}-{drawn.randint(1, 12):02}-{drawn.randint(1, 28):02}"
        if before is not None and drawn.random() < 0.1:
            before = (first, *before[1:5], born)
        else:
            place = int(len(towns) * drawn.random() ** 2)
            street = f"{drawn.randint(1, 250)} {streets[drawn.randrange(len(streets))]} {drawn.choice(_STREETS)}"
            postcode = f"{place * 37 % 90_000 + 10_000 + drawn.randint(0, 9)}"
            before = (first, lasts[int(len(lasts) * drawn.random() ** 3)], street, towns[place], postcode, born)
        yield before


def write_again(person: Person, drawn: random.Random) -> Person:
    """Return a person as another table has it: in three of five cells out of four as it was."""
    first, last, street, town, postcode, born = person
    if drawn.random() < 0.2:
        first = drawn.choice((first[0] + ".", slip(first, drawn), first.upper()))
    if drawn.random() < 0.15:
        last = slip(last, drawn)
    if drawn.random() < 0.3:
        number, name, kind = street.split(" ")
        moved = f"{drawn.randint(1, 250)} {name} {kind}"
        street = drawn.choice((f"{name} {kind} {number}", f"{number} {name} {kind[:2]}.", f"{name} {kind}", moved))
    if drawn.random() < 0.1:
        town = drawn.choice((slip(town, drawn), ""))
    if drawn.random() < 0.1:
        postcode = drawn.choice((postcode[:-1], ""))
    if drawn.random() < 0.15:
        year, month, day = born.split("-")
        born = drawn.choice((f"{day}.{month}.{year}", f"{year}-{day}-{month}" if int(day) <= 12 else "", ""))
    return first, last, street, town, postcode, born


def slip(word: str, drawn: random.Random) -> str:
    """Return a word with one letter wrong, missing, twice, or in the place of the next."""
    at = drawn.randrange(1, len(word))
    head, letter, tail = word[:at], word[at], word[at + 1 :]
    return drawn.choice((head + drawn.choice(_LETTERS) + tail, head + tail, head + letter * 2 + tail,
                         head + tail[:1] + letter + tail[1:]))  # fmt: skip


def write_tables(folder: Path, rows: int, *, one: bool = False) -> tuple[Path, Path]:
    """Write both tables into a folder, the right one in another order; with `one` both into left.csv.

    A row's id is the number of its person.
    """
    drawn = random.Random(rows)
    people = list(draw_people(drawn, rows + rows // 2))
    again = [(number, write_again(person, drawn)) for number, person in enumerate(people) if number >= rows // 2]
    drawn.shuffle(again)
    left, right = folder / "left.csv", folder / "right.csv"
    first = list(enumerate(people[:rows]))
    _write(left, [*first, *again] if one else first)
    _write(right, again)
    return left, right


def _write(path: Path, rows: Sequence[tuple[int, Person]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("person", *COLUMNS), *((number, *person) for number, person in rows)])


def measure(words: Sequence[str | Path]) -> tuple[float, float, float]:
    """Run a command of gramvec; return its CPU seconds, gigabytes of peak memory, and wall seconds."""
    import time

    began = time.monotonic()
    child = Popen([Path(sys.executable).with_name("gramvec"), *words])
    if child.wait():
        raise SystemExit(f"gramvec {words[0]} ended with {child.returncode}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9, time.monotonic() - began


@click.command()
@click.argument("rows", type=click.IntRange(min=10), default=100_000)
@click.option("--dedupe", is_flag=True, help="Both tables as one, and its duplicates.")
@click.option("--engine", help="As of gramvec match.")
def main(rows: int, engine: str | None, *, dedupe: bool) -> None:
    """Print what matching two tables of ROWS people takes, and how many of the people in both are found."""
    on = [word for name in COLUMNS for word in ("--on", name)]
    with tempfile.TemporaryDirectory() as name:
        left, right = write_tables(Path(name), rows, one=dedupe)
        output = Path(name) / "found.csv"
        job = ["dedupe", left] if dedupe else ["match", left, right, "--id", "person"]
        given = [*job, *on, "--columns", "none" if dedupe else "compared", "-o", output]
        cpu, memory, _ = measure([*given, *(["--engine", engine] if engine else [])])
        found = list(csv.DictReader(output.read_text().splitlines()))
    click.echo(f"{cpu:,.0f} CPU seconds, {memory:.2f} GB")
    if not dedupe:
        right_pairs = {row["left_id"] for row in found if row["left_id"] == row["right_id"]}
        click.echo(f"{len(right_pairs):,} of {rows - rows // 2:,} found; {len(found):,} pairs written")


if __name__ == "__main__":
    main()
