"""Jobs outside of English, beside TF-IDF: python -m benchmarks.languages DEV [MODEL ...].

DEV is the folder of development data. What it lacks is left out with a line that says so; intents come by
`python training/fetch_data.py FOLDER --only xsid`. Models are bundles; if none is named, gramvec-multi and gramvec-en.
No setting of gramvec was chosen on the intents or on the names.

- Intents (xSID): labels learned from 300 requests of the language that is asked, and from those of English.
- Search (XQuAD): paragraphs for a question, by letters, by meaning and by both; and for the same question in another
  language, by meaning.
- Duplicates (Tatoeba): sentences and their English translations in one list, each pair of them a duplicate.
- Matching (registers of made people): recall of the matched rows of each language, and the precision of the table.
- Names: of countries, as the package pycountry has them, and whether the English name of one is the nearest of all.
"""

from __future__ import annotations

import csv
import gettext
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import gramvec
from gramvec.jobs.classify.fit import fit_head
from gramvec.jobs.matching.nearest import Matches
from gramvec_training.evaluation.ranking import DEPTH, RetrievalSet, find_retrieval_sets, ndcg

MODELS = ("gramvec-multi", "gramvec-en")
NOT_LISTED = "kk"  # Kazakh: gramvec-multi lists no words of it
LOWEST, THRESHOLD = 0.5, 0.8  # cosines
REGISTERS = ("people11", "people12", "people13", "people14")
COUNTRIES = (
    "ar", "bg", "cs", "de", "el", "es", "fi", "fr", "hi", "hu", "ja", "ko", "pl", "ru", "tr", "uk", "vi", "zh_CN",
)  # fmt: skip
Labeled = tuple[list[str], list[str]]
Represents = Callable[[Sequence[str]], Any]


def main(dev: Path, names: Sequence[str]) -> None:
    """Print all figures for which DEV has the data."""
    models = {name: gramvec.load(name, device="cpu", threads=1) for name in names}
    for title, rows in (
        ("Paragraphs for a question, nDCG@10 in %", show_search(dev / "multilingual" / "xquad", models)),
        (
            "Paragraphs for a question in another language, nDCG@10 in %",
            show_crossed(dev / "multilingual" / "xquad", models),
        ),
        ("Intents within a language, accuracy in %", show_intents(dev / "multilingual" / "xsid", models, None)),
        ("Intents learned from English, accuracy in %", show_intents(dev / "multilingual" / "xsid", models, "en")),
        ("Sentences and their translations as duplicates, F1 in %", show_duplicates(dev, models)),
        ("Customers of two lists, by letters, %", show_registers(dev / "registers")),
        ("English name of a country is the nearest of all, %", show_countries(models)),
    ):
        sys.stdout.write(f"{title}\n")
        for row in rows:
            cells = [cell if isinstance(cell, str) else f"{cell:.1f}" for cell in row]
            line = "".join(cell.ljust(18) if place == 0 else cell.rjust(26) for place, cell in enumerate(cells))
            sys.stdout.write(f"  {line}\n")
            sys.stdout.flush()


def show_search(folder: Path, models: dict[str, gramvec.Embedder]) -> Iterator[Sequence[Any]]:
    """Yield of each language how well the paragraph is found: by letters, and of each model by both and by meaning."""
    sets = find_retrieval_sets(folder) if folder.is_dir() else []
    if not sets:
        yield (f"left out: there is no {folder}",)
        return
    ways = ["letters", *(f"{name}, {way}" for name in models for way in ("both", "meaning"))]
    yield ("", *ways)
    found = []
    for one in sets:
        figures = []
        for place, model in enumerate(models.values()):
            with TemporaryDirectory(prefix="gramvec-") as made:
                index = gramvec.Index.build(Path(made) / "x.index", one.documents, model=model)
                if place == 0:
                    figures.append(_ask_index(index, one, "letters"))
                figures += [_ask_index(index, one, None), _ask_index(index, one, "meaning")]
        found.append(figures)
        yield (one.name, *figures)
    yield (f"mean of {len(found)}", *np.mean(found, axis=0))


def _ask_index(index: gramvec.Index, one: RetrievalSet, only: Any) -> float:
    answers = index.search(one.queries, DEPTH, only=only, truncate=True)
    places = [[int(hit.id) - 1 for hit in hits] for hits in answers]
    return 100 * float(np.mean([ndcg(own, grades, DEPTH) for own, grades in zip(places, one.grades, strict=True)]))


def show_crossed(folder: Path, models: dict[str, gramvec.Embedder]) -> Iterator[Sequence[Any]]:
    """Yield of each two languages how well the paragraph of one is found for the question in the other, by meaning."""
    sets = find_retrieval_sets(folder) if folder.is_dir() else []
    if len(sets) < 2:
        yield (f"left out: there are no two languages in {folder}",)
        return
    yield ("", *models, "TF-IDF")
    found = []
    for one, other in permutations(sets, 2):
        tfidf = _tfidf([*one.queries, *other.documents])
        ways: list[Represents] = [*(model.embed for model in models.values()), lambda texts, way=tfidf: way(texts)]  # type: ignore[misc]
        figures = []
        for represent in ways:
            table = represent(one.queries) @ represent(other.documents).T
            best = np.argsort(-(table if isinstance(table, np.ndarray) else table.toarray()), axis=1)[:, :DEPTH]
            gains = [ndcg(own, grades, DEPTH) for own, grades in zip(best.tolist(), one.grades, strict=True)]
            figures.append(100 * float(np.mean(gains)))
        found.append(figures)
        yield (f"{one.name} to {other.name}", *figures)
    yield (f"mean of {len(found)}", *np.mean(found, axis=0))


def show_intents(folder: Path, models: dict[str, gramvec.Embedder], learned: str | None) -> Iterator[Sequence[Any]]:
    """Yield the accuracies of each language, of labels learned from itself or from another, and their means."""
    languages = sorted(path.name for path in folder.glob("*") if path.name != learned)
    if not languages:
        yield (f"left out: there is no {folder}",)
        return
    first = next(iter(models))
    names = [*(f"classify, {name}" for name in models), "SVM, TF-IDF", f"SVM, {first}"]
    yield ("", *names)
    found: dict[str, list[float]] = {}
    for language in languages:
        known = _read_labeled(folder / (learned or language) / "train.tsv")
        asked, right = _read_labeled(folder / language / "test.tsv")
        answers = [
            *(_ask_head(model, known, asked) for model in models.values()),
            _ask_svm(_tfidf(known[0]), known, asked),
            _ask_svm(models[first].embed, known, asked),
        ]
        found[language] = [100 * float(np.mean([*map(str.__eq__, given, right)])) for given in answers]
        yield (f"{language}, not listed" if language == NOT_LISTED else language, *found[language])
    listed = [accuracies for language, accuracies in found.items() if language not in (NOT_LISTED, "en")]
    yield (f"mean of {len(listed)}", *np.mean(listed, axis=0))


def _read_labeled(path: Path) -> Labeled:
    rows = [line.split("\t", 1) for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]
    return [text for _, text in rows], [label for label, _ in rows]


def _ask_head(model: gramvec.Embedder, known: Labeled, asked: Sequence[str]) -> list[str]:
    head, _ = fit_head(known[0], model.embed(known[0]), known[1], model="", digest="0" * 64)
    return [head.labels[best] for best in head.predict(asked, model.embed(asked)).argmax(axis=1)]


def _ask_svm(represent: Represents, known: Labeled, asked: Sequence[str]) -> list[str]:
    classifier = import_module("sklearn.svm").LinearSVC().fit(represent(known[0]), known[1])
    return list(classifier.predict(represent(asked)))


def _tfidf(texts: Sequence[str]) -> Represents:
    made = import_module("sklearn.feature_extraction.text").TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True
    )
    made.fit(texts)
    return made.transform  # type: ignore[no-any-return]


def show_duplicates(dev: Path, models: dict[str, gramvec.Embedder]) -> Iterator[Sequence[Any]]:
    """Yield F1 of each language: by meaning at 0.8 and at the best threshold from 0.5 on, and by letters."""
    paths = sorted((dev / "multilingual" / "tatoeba").glob("*.tsv"))
    if not paths:
        yield (f"left out: there is no {dev / 'multilingual' / 'tatoeba'}",)
        return
    yield ("", *(f"{name}, {at}" for name in models for at in (THRESHOLD, "best")), "by letters")
    found = []
    for path in paths:
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]
        texts = [text for column in zip(*rows, strict=True) for text in column]
        figures = []
        for model in models.values():
            pairs = Matches(*gramvec.dedupe(texts, by="meaning", model=model, threshold=LOWEST).pairs)
            figures.append(_f1(pairs, len(rows), THRESHOLD))
            figures.append(max(_f1(pairs, len(rows), at) for at in np.arange(LOWEST, 1, 0.02)))
        found.append([*figures, _f1(Matches(*gramvec.dedupe(texts).pairs), len(rows), 0.0)])
        yield (path.stem, *found[-1])
    yield (f"mean of {len(found)}", *np.mean(found, axis=0))


def _f1(pairs: Matches, count: int, threshold: float) -> float:
    kept = pairs.scores >= threshold
    right = int((pairs.right - pairs.left == count)[kept].sum())
    return 200 * right / (int(kept.sum()) + count)


def show_registers(folder: Path) -> Iterator[Sequence[Any]]:
    """Yield the recall of `gramvec match`, one to one and by its defaults, of each language's people; and precision."""
    yield ("", "recall", "people", "precision of the table")
    for name in REGISTERS:
        if not (folder / name).is_dir():
            yield (f"left out: there is no {folder / name}",)
            continue
        left, right, true = ([*csv.DictReader((folder / name / f"{part}.csv").open(encoding="utf-8"))]
                             for part in ("left", "right", "gt"))  # fmt: skip
        named = [*zip(list(left[0])[1:], list(right[0])[1:], strict=True)]
        matches = gramvec.match(left, right, on=named, one_to_one=True).matches
        keys = [[row[next(iter(row))] for row in rows] for rows in (left, right)]
        pairs = {(keys[0][one], keys[1][other]) for one, other in zip(matches.left, matches.right, strict=True)}
        precision = 100 * len(pairs & {(row["left"], row["right"]) for row in true}) / len(pairs)
        of_language: defaultdict[str, list[bool]] = defaultdict(list)
        for row in true:
            of_language[row["loc"]].append((row["left"], row["right"]) in pairs)
        for language, hits in sorted(of_language.items()):
            yield (f"{name}, {language}", 100 * float(np.mean(hits)), float(len(hits)), precision)


def show_countries(models: dict[str, gramvec.Embedder]) -> Iterator[Sequence[Any]]:
    """Yield, of each language, how often the nearest English name is the right one, and how many are written alike."""
    try:
        pycountry = import_module("pycountry")
    except ImportError:
        yield ("left out: pycountry is not installed",)
        return
    english = [country.name for country in pycountry.countries]
    yield ("", *models, "TF-IDF", "written alike")
    found = []
    for language in COUNTRIES:
        translated = gettext.translation("iso3166-1", pycountry.LOCALES_DIR, languages=[language])
        names = [translated.gettext(name) for name in english]
        cosines = [model.similarity(names, english) for model in models.values()]
        represent = _tfidf([*names, *english])
        cosines.append((represent(names) @ represent(english).T).toarray())
        shares = [100 * float((table.argmax(axis=1) == np.arange(len(names))).mean()) for table in cosines]
        alike = float(np.mean([name.casefold() == one.casefold() for name, one in zip(names, english, strict=True)]))
        found.append([*shares, 100 * alike])
        yield (language, *found[-1])
    yield (f"mean of {len(found)}", *np.mean(found, axis=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or MODELS)
