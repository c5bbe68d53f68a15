"""python -m benchmarks.lines N [--data DIR] > FILE: real lines, and beyond them as many more as are wanted.

The lines of all DIR/*.txt.gz in an order drawn by a seed, each different one once, repeats left out; of more than there
are, each further line is the first half of the words of one and the second half of the words of another. So the same N
has the same bytes anywhere, a larger N begins with those of a smaller one, and a file of any size has near-duplicates
at all cosines, as real ones have. Holds the real lines in memory: 2,000,000 take 0.5 GB.
"""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import click

DATA = Path("../shared/data/train/raw")


def real_lines(folder: Path) -> list[str]:
    """The different lines of *.txt.gz in a folder, in an order drawn by a seed."""
    found: dict[str, None] = {}
    for path in sorted(folder.glob("*.txt.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            found.update(dict.fromkeys(text for line in file if (text := " ".join(line.split()))))
    lines = list(found)
    random.Random(0).shuffle(lines)
    return lines


def more_lines(lines: list[str], number: int) -> Iterator[str]:
    """`number` lines: these, then halves of two of them."""
    yield from lines[:number]
    numbers = random.Random(1)
    for _ in range(number - len(lines)):
        first, second = numbers.choice(lines).split(" "), numbers.choice(lines).split(" ")
        yield " ".join(first[: (len(first) + 1) // 2] + second[len(second) // 2 :])


@click.command()
@click.argument("number", metavar="N", type=click.IntRange(min=1))
@click.option("--data", type=click.Path(path_type=Path, file_okay=False, exists=True), default=DATA, show_default=True,
              help="A folder with *.txt.gz.")  # fmt: skip
def main(number: int, data: Path) -> None:
    """Print N lines: real ones, then halves of two put together."""
    lines = real_lines(data)
    if not lines:
        raise click.ClickException(f"{data}: no line in any *.txt.gz; name another folder with --data")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    sys.stdout.writelines(f"{line}\n" for line in more_lines(lines, number))


if __name__ == "__main__":
    main()
