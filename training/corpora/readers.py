"""What the authors' files hold: one function for each layout, by the name that a row of recipes.toml has as `reader`.

Each takes the files of a recipe, in its order, and the columns that it names, and yields records: the wordings of a
meaning, the words of a pair, or one text.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from corpora.recipe import AuthorsFile
from corpora.writers import join_spaces

Files = Sequence[AuthorsFile]
Records = Iterator[Sequence[str]]
Reader = Callable[[Files, Sequence[str]], Records]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_COMMENT = re.compile(r"^# ([\w-]+) ?[=:] (.*)$", re.MULTILINE)
_WORD = re.compile(r"[a-z][a-z'\-]*")
MAX_UNPACKED = 2**28


def unpack(data: bytes) -> bytes:
    """Return what gzip packed.

    Raises:
        ValueError: That is more than 256 MiB.
    """
    with gzip.open(io.BytesIO(data)) as packed:
        unpacked = packed.read(MAX_UNPACKED + 1)
    if len(unpacked) > MAX_UNPACKED:
        raise ValueError("unpacks to more than 256 MiB")
    return unpacked


def _read_rows(files: Files, columns: Sequence[str]) -> Iterator[list[str]]:
    """Yield the named columns of CSV, or of TSV where the file is named so, quotation marks read."""
    for file in files:
        delimiter = "\t" if file.path.endswith(".tsv") else ","
        for row in csv.DictReader(io.StringIO(file.text), delimiter=delimiter):
            yield [row[column] for column in columns]


def read_rows(files: Files, columns: Sequence[str]) -> Records:
    """Yield the named columns of each row of CSV or TSV, whose first line names them."""
    yield from _read_rows(files, columns)


def _collect(pairs: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key, text in pairs:
        groups.setdefault(key, []).append(text)
    return groups


def read_texts_of_key(files: Files, columns: Sequence[str]) -> Records:
    """Yield the texts of each key: `columns` are the key's and the text's."""
    yield from _collect(_read_rows(files, columns)).values()


def read_sides(files: Files, columns: Sequence[str]) -> Records:
    """Yield both columns of lines with one tab; `<::::>` of WikiSplit parts sentences."""
    for file in files:
        for line in file.lines:
            if len(sides := line.split("\t")) == 2:
                yield sides[0], sides[1].replace("<::::>", " ")


def read_sides_of_first(files: Files, columns: Sequence[str]) -> Records:
    """Yield the second columns of all lines with the same first."""
    yield from _collect(read_sides(files, columns)).values()


def read_json_columns(files: Files, columns: Sequence[str]) -> Records:
    """Yield the named values of each object of a list, or of a mapping's values; of `verbalized_answer*` all."""
    for file in files:
        values: Any = json.loads(file.data)
        for one in values.values() if isinstance(values, dict) else values:
            yield [one.get(column, "") for column in columns]


def read_dart(files: Files, columns: Sequence[str]) -> Records:
    """Yield the texts of each set of facts of DART."""
    for file in files:
        for facts in json.loads(file.data):
            yield [annotation["text"] for annotation in facts["annotations"]]


def read_paraqa(files: Files, columns: Sequence[str]) -> Records:
    """Yield the verbalized answers of each question of ParaQA, without the brackets around the answer."""
    for file in files:
        for question in json.loads(file.data):
            answers = [value for key, value in question.items() if key.startswith("verbalized_answer")]
            yield [re.sub(r"[\[\]]", "", answer) for answer in answers if answer and answer != "n/a"]


def read_squad(files: Files, columns: Sequence[str]) -> Records:
    """Yield the questions of one id and part, the original's file before the paraphrases'."""
    questions: dict[tuple[str, str], list[str]] = {}
    for file in files:
        part = file.path.rpartition("/")[2].split("_")[0]
        for article in json.loads(file.data)["data"]:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    questions.setdefault((part, question["id"]), []).append(question["question"])
    yield from questions.values()


def read_onestop(files: Files, columns: Sequence[str]) -> Records:
    """Yield the two sentences between rows of asterisks."""
    for file in files:
        for block in re.split(r"\*+", file.text):
            sentences = [line.strip() for line in block.strip().split("\n") if line.strip()]
            if len(sentences) == 2:
                yield sentences


def read_lexicon(files: Files, columns: Sequence[str]) -> Records:
    """Yield the first word of a line with each other, where both are of letters."""
    for file in files:
        for line in file.lines:
            first, *rest = line.split()
            yield from ((first, other) for other in rest if _WORD.fullmatch(first) and _WORD.fullmatch(other))


def read_word_pairs(files: Files, columns: Sequence[str]) -> Records:
    """Yield both words of lines with two."""
    for file in files:
        for line in file.lines:
            if len(words := line.split()) == 2:
                yield words


def read_letter_pairs(files: Files, columns: Sequence[str]) -> Records:
    """Yield both columns of lines with two, where they are words of letters."""
    for file in files:
        for line in file.lines:
            words = line.strip().split("\t")
            if len(words) == 2 and all(_WORD.fullmatch(word.strip().lower()) for word in words):
                yield words


def read_codespell(files: Files, columns: Sequence[str]) -> Records:
    """Yield right and wrong of each line `wrong->right` with one correction."""
    for file in files:
        for line in file.lines:
            wrong, _, corrections = line.partition("->")
            right = [correction.strip() for correction in corrections.split(",") if correction.strip()]
            if len(right) == 1:
                yield right[0], wrong.strip()


def read_typos(files: Files, columns: Sequence[str]) -> Records:
    """Yield right and wrong of each line `wrong,right` with one correction."""
    for file in files:
        for line in file.lines:
            if len(words := line.split(",")) == 2:
                yield words[1], words[0]


def _read_synsets(files: Files) -> Iterator[dict[str, Any]]:
    try:
        import yaml
    except ModuleNotFoundError:
        raise ValueError("PyYAML is not installed; install pyyaml") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for file in files:
        yield from (synset for synset in (yaml.load(file.data, Loader=loader) or {}).values())  # noqa: S506


def read_synonyms(files: Files, columns: Sequence[str]) -> Records:
    """Yield each two members of a synset of Open English WordNet."""
    for synset in _read_synsets(files):
        members = synset.get("members", [])
        yield from ((earlier, later) for place, later in enumerate(members) for earlier in members[:place])


def read_definitions(files: Files, columns: Sequence[str]) -> Records:
    """Yield the first member and the first definition of a synset of Open English WordNet."""
    for synset in _read_synsets(files):
        if synset.get("members") and synset.get("definition"):
            yield synset["members"][0], synset["definition"][0]


def read_similarity(files: Files, columns: Sequence[str]) -> Records:
    """Yield score, text and text of the lines that have a score.

    Where columns are named, the first line names them all. A control character becomes a space.
    """
    for file in files:
        lines = file.lines
        header = lines.pop(0).split("\t") if columns else []
        places = [header.index(column) for column in columns] or [0, 1, 2]
        for line in lines:
            cells = line.split("\t")
            if len(cells) > max(places):
                score, *texts = (_CONTROL.sub(" ", cells[place].strip()) for place in places)
                if score:
                    yield f"{float(score):g}", *texts


def read_side_by_side(files: Files, columns: Sequence[str]) -> Records:
    """Yield a line of the first file and the same line of the second."""
    for lines in zip(*(file.lines for file in files), strict=True):
        yield [line.strip() for line in lines]


def read_paragraphs(files: Files, columns: Sequence[str]) -> Records:
    """Yield the documents, the queries or the judgments of questions that were asked of paragraphs, as SQuAD has them.

    Paragraphs are named p0, p1, ...; a judgment is a question, its paragraph, and 1.
    """
    (wanted,) = columns
    paragraphs = (
        paragraph for file in files for article in json.loads(file.text)["data"] for paragraph in article["paragraphs"]
    )
    for count, paragraph in enumerate(paragraphs):
        if wanted == "documents":
            yield f"p{count}", " ".join(paragraph["context"].split())
            continue
        for question in paragraph["qas"]:
            if wanted == "queries":
                yield question["id"], " ".join(question["question"].split())
            else:
                yield question["id"], f"p{count}", "1"


def read_intents(files: Files, columns: Sequence[str]) -> Records:
    """Yield the intent and the text of CoNLL's blocks that name both in comments."""
    for file in files:
        for block in file.text.split("\n\n"):
            comments = dict(_COMMENT.findall(block))
            if comments.keys() >= {"intent", "text"}:
                yield comments["intent"], join_spaces(comments["text"])
