"""`gramvec dedupe`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import click
import numpy as np
import orjson
from numpy.typing import NDArray
from tqdm import tqdm

from gramvec.bulk import (
    Ids,
    OnError,
    Pairs,
    Texts,
    cores,
    groups,
    near_pairs,
    one_blas_thread,
    read_texts,
    spooled,
    units_of,
    write_kept,
)
from gramvec.cli.embed import (
    column_option,
    input_format_option,
    max_characters_option,
    on_error_option,
    progress,
    source_argument,
    threads_option,
    told_to_stop,
    truncate_option,
)  # fmt: skip
from gramvec.cli.options import device_option, model_option
from gramvec.embedding import load
from gramvec.errors import InputError
from gramvec.files import STDIN, Form, form_of, whole
from gramvec.runtime import Device

THRESHOLD = 0.9
MOST_TEXTS = 1_000_000
MOST_PAIRS = 10_000_000


@click.command("dedupe", short_help="Find near-duplicates in a file.")
@source_argument
@click.option("--threshold", type=click.FloatRange(0, 1, min_open=True), default=THRESHOLD, show_default=True,
              help="The least cosine of a pair.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Where the list goes. [stdout]")
@click.option("--groups", "by_group", is_flag=True, help="List groups instead: lines that a chain of pairs joins.")
@click.option("--keep", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), metavar="FILE",
              help="Write INPUT there with only the first line of each group; no list but to --output.")  # fmt: skip
@click.option("--texts/--no-texts", default=True, show_default=True, help="List the texts beside the lines' numbers.")
@click.option("--json", "as_json", is_flag=True, help="JSON, an object a line, instead of tabs.")
@input_format_option
@column_option
@model_option
@device_option
@truncate_option
@max_characters_option
@on_error_option
@click.option("--max-texts", type=click.IntRange(min=1), default=MOST_TEXTS, show_default=True,
              help="Refuse a file with more different texts.")  # fmt: skip
@click.option("--max-pairs", type=click.IntRange(min=1), default=MOST_PAIRS, show_default=True,
              help="Refuse to find more pairs.")  # fmt: skip
@threads_option
def dedupe(
    source: Path,
    threshold: float,
    output: Path | None,
    by_group: bool,
    keep: Path | None,
    texts: bool,
    as_json: bool,
    input_format: Form | None,
    column: str,
    model: str,
    device: Device,
    truncate: bool,
    max_characters: int,
    on_error: OnError,
    max_texts: int,
    max_pairs: int,
    threads: int | None,
) -> None:
    """List the pairs of lines of INPUT whose cosine is at least --threshold: line, line, score, texts, between tabs.

    INPUT is what `gramvec embed` reads. Every two texts are compared, exactly; equal ones are a pair of score 1. Tabs
    and line feeds in listed texts are spaces; --json has them as they are.

    \b
    Examples:
      gramvec dedupe titles.txt
      gramvec dedupe tickets.csv --column subject --threshold 0.95 --groups --json
      sort titles.txt | gramvec dedupe --keep - > unique.txt
    """  # noqa: D301 - click takes the character, not its escape
    form = input_format or form_of(source)
    with one_blas_thread():
        pass  # whether it can be had is known before minutes of work, not after them
    embedder = load(model, device=device, max_characters=max_characters, threads=threads)
    with told_to_stop(), tempfile.TemporaryDirectory(prefix="gramvec-") as folder:
        file = spooled(sys.stdin.buffer, Path(folder)) if source == STDIN else source
        with progress("reading") as watch:
            found = read_texts(
                file, form, column, embedder, truncate=truncate, on_error=on_error, most=max_texts, watch=watch
            )
        with _bar("embedding", len(found.different), " texts") as bar:
            units = units_of(embedder, found.different, truncate=truncate, watch=bar.update)
        embedder.close()
        number = len(units)
        with _bar("comparing", number * (number - 1) // 2, " pairs") as bar:
            pairs = near_pairs(units, threshold, threads=threads or cores(), most=max_pairs, watch=bar.update)
        del units
        if keep is None or output is not None:
            records = _groups(found, pairs) if by_group else _pairs(found, pairs, max_pairs)
            _write(output, _lines(records, with_texts=texts, as_json=as_json))
        if keep is not None:
            kept = _first_of_each(found, pairs)
            target = Path(folder) / "kept" if keep == STDIN else keep
            write_kept(file, form, column, kept, target)
            if keep == STDIN:
                sys.stdout.buffer.write(target.read_bytes())
            click.echo(f"{int(kept.sum()):,} of {len(kept):,} {found.unit}s kept", err=True)
    for sentence in found.bad.report(len(found.numbers), found.unit):
        click.echo(sentence, err=True)


def _bar(title: str, total: int, unit: str) -> Any:
    return tqdm(desc=title, total=total, unit=unit, unit_scale=True, disable=None, file=sys.stderr)


def _rows_of(found: Texts) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in found.different]
    for row, text in enumerate(found.of_row):
        if text >= 0:
            rows[text].append(row)
    return rows


def _pairs(found: Texts, pairs: Pairs, most: int) -> Iterator[dict[str, Any]]:
    """All pairs of rows, in order of their numbers: equal texts, and the rows of near ones."""
    rows = _rows_of(found)
    sizes = np.array([len(one) for one in rows], np.int64)
    total = int((sizes * (sizes - 1) // 2).sum() + (sizes[pairs.left] * sizes[pairs.right]).sum())
    if total > most:
        raise InputError(
            f"{total:,} pairs of lines, with equal ones; take --groups or --keep, or raise --threshold or --max-pairs"
        )
    near: list[tuple[int, int, float]] = []
    for one in rows:
        near += [(a, b, 1.0) for at, a in enumerate(one) for b in one[at + 1 :]]
    for left, right, score in zip(pairs.left.tolist(), pairs.right.tolist(), pairs.scores.tolist(), strict=True):
        near += [(min(a, b), max(a, b), score) for a, b in product(rows[left], rows[right])]
    for a, b, score in sorted(near):
        yield {
            "lines": [found.numbers[a], found.numbers[b]],
            "score": score,
            "texts": [found.different[found.of_row[row]] for row in (a, b)],
        }


def _roots(found: Texts, pairs: Pairs) -> Ids:
    """int64[rows]: the first row of each row's group; a bad row is a group of its own."""
    first = groups(len(found.different), pairs.left, pairs.right)
    seen: dict[int, int] = {}
    return np.array(
        [row if text < 0 else seen.setdefault(int(first[text]), row) for row, text in enumerate(found.of_row)], np.int64
    )


def _first_of_each(found: Texts, pairs: Pairs) -> NDArray[np.bool_]:
    kept: NDArray[np.bool_] = _roots(found, pairs) == np.arange(len(found.of_row))
    return kept


def _groups(found: Texts, pairs: Pairs) -> Iterator[dict[str, Any]]:
    members: dict[int, list[int]] = {}
    for row, root in enumerate(_roots(found, pairs).tolist()):
        members.setdefault(root, []).append(row)
    for rows in members.values():
        if len(rows) > 1:
            yield {
                "lines": [found.numbers[row] for row in rows],
                "texts": [found.different[found.of_row[row]] for row in rows],
            }


def _lines(records: Iterator[dict[str, Any]], *, with_texts: bool, as_json: bool) -> Iterator[bytes]:
    for group, record in enumerate(records, start=1):
        texts = record["texts"] if with_texts else record.pop("texts")[:0]
        if as_json:
            yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        elif "score" in record:
            yield _tabbed([*record["lines"], f"{record['score']:.4f}", *texts])
        else:
            for line, text in zip_longest(record["lines"], texts):
                yield _tabbed([group, line, *([text] if with_texts else [])])


def _tabbed(fields: list[Any]) -> bytes:
    return ("\t".join(" ".join(str(field).split()) for field in fields) + "\n").encode()


def _write(output: Path | None, lines: Iterator[bytes]) -> None:
    if output is None:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
    elif output.exists() and not output.is_file():
        with output.open("wb") as file:
            file.writelines(lines)
    else:
        with whole(output) as file:
            file.writelines(lines)
