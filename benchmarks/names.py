"""Names written twice, in eleven scripts and ways: how many match, dedupe and search by letters find at their defaults.

    python -m benchmarks.names [LANGUAGE...]

300 names for each language, each of 20 given names with each of 15 families; so a name shares a part with 33 others.
The second list has no marks, is in capitals, and has the family first; of Chinese, Japanese and Korean it has a space
in between. Of full width, ligatures and zero width only that differs. The commands run as a user runs them.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable
from pathlib import Path

import click
import orjson

# Of each language the families and the given names, with spaces between.
PARTS = Path(__file__).with_suffix(".tsv")
# Letters that have no decomposition, as people write them who lack them.
STROKED = str.maketrans("łŁøØđĐı", "lLoOdDi")
ZERO_WIDTH = "\u200b\u00ad\u200d\ufeff"
LIGATURES = {"ffi": "\ufb03", "ffl": "\ufb04", "ff": "\ufb00", "fi": "\ufb01", "fl": "\ufb02"}


# A family and a given name as one text.
Way = Callable[[str, str], str]


def given_first(family: str, given: str) -> str:
    """Return a name as Europeans write it."""
    return f"{given} {family}"


def joined(family: str, given: str) -> str:
    """Return a name as East Asians write it."""
    return family + given


def unmarked(family: str, given: str) -> str:
    """Return a name without marks, in capitals, the family first."""
    apart = unicodedata.normalize("NFD", f"{family} {given}".translate(STROKED))
    return unicodedata.normalize("NFC", "".join(one for one in apart if unicodedata.category(one) != "Mn")).upper()


def _widened(family: str, given: str) -> str:
    return "".join(chr(0x3000 if one == " " else ord(one) + 0xFEE0) for one in given_first(family, given))


def _ligated(family: str, given: str) -> str:
    name = given_first(family, given)
    for letters, ligature in LIGATURES.items():
        name = name.replace(letters, ligature)
    return name


def _split_invisibly(family: str, given: str) -> str:
    name = given_first(family, given)
    return "".join(one + ZERO_WIDTH[at % len(ZERO_WIDTH)] * (at % 3 == 1) for at, one in enumerate(name))


WAYS: dict[str, tuple[Way, Way]] = {
    **dict.fromkeys(("Latin", "Greek", "Russian", "Hebrew", "Arabic"), (given_first, unmarked)),
    **dict.fromkeys(("Korean", "Japanese", "Chinese"), (joined, "{} {}".format)),
    "full width": (given_first, _widened),
    "ligatures": (given_first, _ligated),
    "zero width": (given_first, _split_invisibly),
}


def names_of(language: str) -> list[tuple[str, str]]:
    """Return 300 names, each written in both ways."""
    lines = (line.split("\t") for line in PARTS.read_text().splitlines())
    parts = {name: (families.split(), given.split()) for name, families, given in lines}
    families, given = parts[language]
    first, second = WAYS[language]
    return [(first(family, one), second(family, one)) for family in families for one in given]


def command(*words: str | Path) -> str:
    """Return what a command of gramvec writes; its folder is where Python runs from."""
    made = subprocess.run(
        [Path(sys.executable).with_name("gramvec"), *words], capture_output=True, text=True, check=True
    )
    return made.stdout


def matched(names: list[tuple[str, str]], folder: Path) -> int:
    """Return how many names `gramvec match` finds, each as the best of its row."""
    for side in (0, 1):
        with (folder / f"{side}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("id", "text"), *((at, name[side]) for at, name in enumerate(names))])
    lines = command("match", folder / "0.csv", folder / "1.csv", "--on", "text", "--format", "csv").splitlines()
    best: dict[str, tuple[float, str]] = {}
    for row in csv.DictReader(lines):
        best[row["left_id"]] = max(best.get(row["left_id"], (0.0, "")), (float(row["score"]), row["right_id"]))
    return sum(left == right for left, (_, right) in best.items())


def deduped(names: list[tuple[str, str]], folder: Path) -> int:
    """Return of how many names `gramvec dedupe` lists both ways as a pair."""
    (folder / "both.txt").write_text("".join(f"{name[side]}\n" for side in (0, 1) for name in names))
    pairs = [
        orjson.loads(line)["lines"] for line in command("dedupe", folder / "both.txt", "--format", "jsonl").splitlines()
    ]
    return sum(other - one == len(names) for one, other in pairs)


def searched(names: list[tuple[str, str]], folder: Path) -> int:
    """Return of how many names the second way finds the first in an index, before all others, by letters alone."""
    for side, name in enumerate(("names.txt", "queries.txt")):
        (folder / name).write_text("".join(f"{both[side]}\n" for both in names))
    command("index", "build", folder / "names.txt", "-o", folder / "names.index")
    given = "--only", "letters", "--file", folder / "queries.txt", "-k", "1", "--format", "jsonl"
    found = {
        (hit := orjson.loads(line))["query"]: hit["record"]["text"]
        for line in command("search", folder / "names.index", *given).splitlines()
    }
    return sum(found.get(query) == name for name, query in names)


@click.command()
@click.argument("languages", nargs=-1, type=click.Choice([*WAYS]))
def main(languages: tuple[str, ...]) -> None:
    """Print how many of 300 names in each language (all without one) each command finds."""
    click.echo("| 300 names | match | dedupe | search --only letters |\n| --- | ---: | ---: | ---: |")
    for language in languages or WAYS:
        names = names_of(language)
        with tempfile.TemporaryDirectory() as folder:
            found = [way(names, Path(folder)) for way in (matched, deduped, searched)]
        click.echo(f"| {language} | {' | '.join(map(str, found))} |")


if __name__ == "__main__":
    main()
