"""`gramvec search` beside what a user would write: BM25 of words by tantivy, TF-IDF of characters by scikit-learn.

On the collections under retrieval/ of the data folder that have misspelt queries: nDCG@10 in %, means over the
collections, of queries as typed, with one word misspelt, and with every word of more than three letters misspelt. Then
on SciFact's queries as typed. CPU seconds are of building all indexes and of all queries, which includes vectors.

Then part numbers, each of which stands in one title of the product tables under matching/: how many of the titles are
found first, and among the first ten.

Then reranking: the hundred best documents of BM25 of words for each query as typed, put in order for the query as each
file spells it.
"""

from __future__ import annotations

import csv
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gramvec
from benchmarks.measure import Setting
from benchmarks.results import Group, Part, Row
from gramvec.embed.reranking import rerank_scores
from gramvec.jobs.search import snapshot
from gramvec.lexical.top_k import top_k
from gramvec_training.evaluation.ranking import DEPTH, RetrievalSet, find_retrieval_sets, ndcg

# Columns of the table, and the files of the queries.
SPELLINGS = {"typed": "queries.tsv", "one_word": "queries.typo1.tsv", "every_word": "queries.typoall.tsv"}
DEFAULT, TFIDF = "gramvec search", "TF-IDF of characters"
# Documents that are reranked for each query.
RERANKED = 100
# Tables of products, how many part numbers of theirs are searched for, and the least characters of one.
PRODUCTS, PART_NUMBERS, SHORTEST_NUMBER = ("abt-buy", "amazon-google", "wdc-shoes"), 300, 5

# The best documents by place, for each query.
Search = Callable[[Sequence[str]], list[list[int]]]
# Documents, and a folder for files.
Build = Callable[[Sequence[str], Path], Search]


def run(setting: Setting) -> Part:
    """Measure each way on the collections, then on SciFact."""
    part = Part()
    folder = setting.data / "retrieval"
    if not folder.is_dir():
        part.note(f"search is left out: there is no {folder}")
        return part
    sets = find_retrieval_sets(folder)
    misspelt = [one for one in sets if all((folder / one.name / name).is_file() for name in SPELLINGS.values())]
    embedder = gramvec.load(setting.model, device="cpu", threads=1)
    try:
        ways = _ways(embedder)
        try:
            import_module("sklearn")
        except ImportError:
            del ways[TFIDF]
            part.note(f"{TFIDF} is left out: scikit-learn is not installed")
        if misspelt:
            title = f"search: means of {', '.join(one.name for one in misspelt)}"
            rows = [_measured(name, way, misspelt, folder) for name, way in ways.items()]
            part.add("search_misspelt", Group(title, f"nDCG@{DEPTH}, %", rows))
            title = f"rerank: the {RERANKED} best of BM25 of words, means of the same"
            part.add("rerank", Group(title, f"nDCG@{DEPTH}, %", _reranked(embedder, misspelt, folder)))
        for one in sets:
            if one not in misspelt:
                rows = [_measured(name, way, [one], None) for name, way in ways.items()]
                part.add(f"search_{one.name}", Group(f"search: {one.name}", f"nDCG@{DEPTH}, %", rows))
        titles = _titles(setting.data / "matching")
        if titles:
            rows = _part_numbers(ways, titles)
            part.add("search_part_numbers", Group(f"search: part numbers in {len(titles):,} titles", "%", rows))
    finally:
        embedder.close()
    return part


def _measured(name: str, build: Build, sets: Sequence[RetrievalSet], folder: Path | None) -> Row:
    """Return the mean scores of one way, over spellings in a folder, or of the queries as typed."""
    columns = SPELLINGS if folder is not None else {"typed": ""}
    scores: dict[str, list[float]] = {column: [] for column in columns}
    build_seconds = query_seconds = 0.0
    for one in sets:
        with TemporaryDirectory(prefix="gramvec-") as made:
            began = time.process_time()
            search = build(one.documents, Path(made))
            build_seconds += time.process_time() - began
            for column, file in columns.items():
                queries = one.queries if folder is None else _spelled(one, folder / one.name, file)
                began = time.process_time()
                found = search(queries)
                query_seconds += time.process_time() - began
                gains = [ndcg(places, grades, DEPTH) for places, grades in zip(found, one.grades, strict=True)]
                scores[column].append(100 * float(np.mean(gains)))
    means = {column: round(float(np.mean(values)), 1) for column, values in scores.items()}
    return {"name": name, **means, "build_cpu_s": round(build_seconds, 2), "query_cpu_s": round(query_seconds, 2)}


def _titles(folder: Path) -> list[str]:
    """Return the different titles of the product tables in a folder."""
    files = [folder / name / f"{side}.csv" for name in PRODUCTS for side in ("left", "right")]
    rows = (row for file in files if file.is_file() for row in csv.DictReader(file.open(encoding="utf-8", newline="")))
    return list(dict.fromkeys(title for row in rows if (title := row.get("name") or row.get("title"))))


def _part_numbers(ways: dict[str, Build], titles: Sequence[str]) -> list[Row]:
    """Return for each way how many of some part numbers find their title, first and among ten."""
    words = [set(title.lower().split()) for title in titles]
    held = Counter(word for one in words for word in one)
    numbers = sorted(word for word, times in held.items() if times == 1 and _is_part_number(word))
    asked = random.Random(1).sample(numbers, min(PART_NUMBERS, len(numbers)))
    places = {word: place for place, one in enumerate(words) for word in one}
    rows = []
    for name, build in ways.items():
        with TemporaryDirectory(prefix="gramvec-") as made:
            found = build(titles, Path(made))(asked)
        of_word = list(zip(asked, found, strict=True))
        first, among = (
            100 * sum(places[word] in one[:most] for word, one in of_word) / len(of_word) for most in (1, DEPTH)
        )
        rows.append({"name": name, "first": round(first, 1), "among_ten": round(among, 1)})
    return rows


def _is_part_number(word: str) -> bool:
    kinds = any(one.isdigit() for one in word) and any(one.isalpha() for one in word)
    return word.isalnum() and len(word) >= SHORTEST_NUMBER and kinds


def _order(scores: NDArray[np.float32]) -> list[int]:
    return top_k(scores, len(scores)).tolist()


def _reranked(embedder: gramvec.Embedder, sets: Sequence[RetrievalSet], folder: Path) -> list[Row]:
    """Return the mean scores of ways to order the same documents."""
    ways: dict[str, Callable[[str, list[str]], Sequence[int]]] = {
        "as BM25 of words has them": lambda _, texts: range(len(texts)),
        "by meaning only": lambda query, texts: _order(embedder.similarity([query], texts)[0]),
        "Embedder.rerank": lambda query, texts: [one.place for one in embedder.rerank(query, texts)],
        "the same, n-grams counted only in the given texts": lambda query, texts: _order(
            rerank_scores(query, texts, embedder.raw([query, *texts]), None)
        ),
    }
    scores: dict[str, dict[str, list[float]]] = {name: {column: [] for column in SPELLINGS} for name in ways}
    seconds = dict.fromkeys(ways, 0.0)
    for one in sets:
        candidates = _words(one.documents, folder, RERANKED)(one.queries)
        for column, file in SPELLINGS.items():
            for name, way in ways.items():
                gains = []
                for query, places, grades in zip(
                    _spelled(one, folder / one.name, file), candidates, one.grades, strict=True
                ):
                    texts = [one.documents[place] for place in places]
                    began = time.process_time()
                    order = way(query, texts)
                    seconds[name] += time.process_time() - began
                    gains.append(ndcg([places[at] for at in order], grades, DEPTH))
                scores[name][column].append(100 * float(np.mean(gains)))
    return [
        {
            "name": name,
            **{column: round(float(np.mean(values)), 1) for column, values in found.items()},
            "cpu_s": round(seconds[name], 2),
        }
        for name, found in scores.items()
    ]


def _spelled(one: RetrievalSet, folder: Path, file: str) -> list[str]:
    """Return the set's queries as a file spells them."""
    typed, spelled = (
        dict(line.split("\t", 1) for line in (folder / name).read_text("utf-8").splitlines())
        for name in (SPELLINGS["typed"], file)
    )
    by_text = {text: spelled[key] for key, text in typed.items()}
    return [by_text[query] for query in one.queries]


def _ways(embedder: gramvec.Embedder) -> dict[str, Build]:
    def ours(only: Any = None) -> Build:
        def build(documents: Sequence[str], folder: Path) -> Search:
            index = gramvec.Index.build(folder / "x.index", documents, model=embedder)
            return lambda queries: [
                [int(hit.id) - 1 for hit in hits] for hits in index.search(queries, DEPTH, only=only, truncate=True)
            ]

        return build

    return {
        DEFAULT: ours(),
        "the same, common n-grams left out": _without_common(ours()),
        "gramvec search --only letters": ours("letters"),
        "gramvec search --only meaning": ours("meaning"),
        "BM25 of words": _words,
        TFIDF: _characters,
    }


def _without_common(build: Build) -> Build:
    """Return a way that leaves common n-grams out as a large index does, however few documents have them."""

    def built(documents: Sequence[str], folder: Path) -> Search:
        search = build(documents, folder)

        def searched(queries: Sequence[str]) -> list[list[int]]:
            usual, snapshot.COMMON_DOCUMENTS = snapshot.COMMON_DOCUMENTS, 0
            try:
                return search(queries)
            finally:
                snapshot.COMMON_DOCUMENTS = usual

        return searched

    return built


def _words(documents: Sequence[str], folder: Path, depth: int = DEPTH) -> Search:
    tantivy = import_module("tantivy")
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text")
    builder.add_integer_field("place", fast=True)
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for place, text in enumerate(documents):
        writer.add_document(tantivy.Document(text=text, place=place))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(queries: Sequence[str]) -> list[list[int]]:
        found = []
        for query in queries:
            words = "".join(one if one.isalnum() else " " for one in query.lower()).split()
            parsed, _ = index.parse_query_lenient(
                " ".join(word for word in words if word not in _stop_words()), ["text"]
            )
            addresses = [address for _, address in searcher.search(parsed, depth).hits]
            found.append(searcher.fast_field_values("place", addresses) if addresses else [])
        return found

    return search


def _stop_words() -> frozenset[str]:
    try:
        words: frozenset[str] = import_module("sklearn.feature_extraction.text").ENGLISH_STOP_WORDS
    except ImportError:
        return frozenset()
    return words


def _characters(documents: Sequence[str], folder: Path) -> Search:
    vectorizer = import_module("sklearn.feature_extraction.text").TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True
    )
    vectors = vectorizer.fit_transform(documents)

    def search(queries: Sequence[str]) -> list[list[int]]:
        scores = (vectorizer.transform(queries) @ vectors.T).toarray()
        return np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH].tolist()

    return search
