"""What the papers' experiments read: arrays of vectors, tagged and labeled text, counts; and SIF's other weights."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_research.answers import Scored, read_scored
from gramvec_research.tagging import TaggedSentence, read_tagged
from gramvec_training.data.corpus import read_source_texts
from gramvec_training.data.vocabulary import count_documents, count_words
from gramvec_training.evaluation.backend import ScoredModel, evaluate_models, remove_components_of_sets
from gramvec_training.evaluation.similarity import SimilaritySet
from gramvec_training.readers.labels import Labeled, read_labeled
from gramvec_training.readers.vectors import find_vectors, read_vectors
from gramvec_training.runs.run_dir import load_run
from gramvec_training.sections import TextSource
from support.training import call, research, sentence

WORDS = ["the", "cat", "dog", "sat", "ran"]
VECTORS = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)


# Word vectors


def save(folder: Path, words: list[str] = WORDS, vectors: Any = VECTORS) -> Path:
    np.save(folder / "v.npy", vectors)
    (folder / "v.txt").write_text("".join(f"{word}\n" for word in words))
    return folder / "v.npy"


def test_an_array_and_the_text_of_it_are_the_same_vectors(tmp_path: Path) -> None:
    lines = [" ".join([word, *(repr(float(one)) for one in row)]) for word, row in zip(WORDS, VECTORS, strict=True)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    by_text, by_array = read_vectors(tmp_path / "text.txt"), read_vectors(save(tmp_path))
    assert by_text[0] == by_array[0] == WORDS
    np.testing.assert_array_equal(by_text[1], by_array[1])


def test_a_repeated_word_keeps_its_first_row(tmp_path: Path) -> None:
    words, vectors = read_vectors(save(tmp_path, ["a", "b", "a", "c", "b"], VECTORS.astype(np.float64)))
    assert words == ["a", "b", "c"]
    np.testing.assert_array_equal(vectors, VECTORS[[0, 1, 3]])
    assert vectors.dtype == np.float32


def test_an_installed_package_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow of the extra `papers` is not installed")
    import pyarrow

    data = tmp_path / "some_vectors_50d" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").write_text("")
    np.save(data / "e.npy", VECTORS)
    parquet.write_table(pyarrow.table({"index": WORDS}), data / "index.parquet")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = find_vectors(Path("some_vectors_50d"), tmp_path / "elsewhere")
    words, vectors = read_vectors(found)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, VECTORS)
    # A file below the data folder comes first, and what is no package is looked for there.
    assert find_vectors(Path("data"), data.parent) == data
    assert find_vectors(Path("no_such_package"), tmp_path) == tmp_path / "no_such_package"
    assert find_vectors(Path("json"), tmp_path) == tmp_path / "json"
    parquet.write_table(pyarrow.table({"a": WORDS, "b": WORDS}), data / "index.parquet")
    with pytest.raises(InputError, match="not one column of words"):
        read_vectors(found)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "v.npy").write_bytes(b"no array"), "not an array of NumPy"),
        (lambda folder: np.save(folder / "v.npy", np.zeros((5, 4), object)), "not an array of NumPy"),
        (lambda folder: np.save(folder / "v.npy", VECTORS[0]), "word vectors are floats, a row a word"),
        (lambda folder: np.save(folder / "v.npy", VECTORS.astype(int)), "word vectors are floats, a row a word"),
        (lambda folder: np.save(folder / "v.npy", VECTORS[:4]), "4 rows and v.txt 5 words"),
        (lambda folder: np.save(folder / "v.npy", VECTORS * np.nan), "row 0: a number that is not finite"),
        (lambda folder: (folder / "v.txt").write_bytes(b"\xff\n" * 5), "not UTF-8"),
        (lambda folder: (folder / "v.txt").unlink(), "no such file"),
        (lambda folder: (folder / "v.npy").unlink(), "no such file"),
    ],
)
def test_bad_arrays_are_named(tmp_path: Path, spoil: Callable[[Path], object], message: str) -> None:
    path = save(tmp_path)
    spoil(tmp_path)
    with pytest.raises(InputError, match=message):
        read_vectors(path)


def test_a_folder_with_two_arrays_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", VECTORS)
    save(tmp_path)
    with pytest.raises(InputError, match=r"one \.npy file and one list"):
        read_vectors(tmp_path)


# Tagged and labeled text

CONLLU = """# sent_id = 1
# text = Don't stop
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
2.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t_\t_
3\tstop\tstop\tVERB\tVB\t_\t1\tccomp\t_\t_

1\tNo\tno\tDET\tDT\t_\t0\troot\t_\t_
"""


def test_conllu_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "t.conllu.gz"
    path.write_bytes(gzip.compress(CONLLU.encode()))
    assert read_tagged(path) == [
        TaggedSentence(("Do", "n't", "stop"), ("VB", "RB", "VB")),
        TaggedSentence(("No",), ("DT",)),
    ]
    assert read_tagged(path, column="upos")[0].tags == ("AUX", "PART", "VERB")


def test_a_word_and_a_tag_a_line(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("Pierre\tNNP\n#\t#\n\n\n,\t,\r\n\n")
    assert read_tagged(tmp_path / "t.tsv") == [
        TaggedSentence(("Pierre", "#"), ("NNP", "#")),
        TaggedSentence((",",), (",",)),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a\tb\tc\n", "line 1: 3 columns"),
        (b"a\tb\nword\n", "line 2: 1 columns"),
        (b"a\t\n", "line 1: 2 columns"),
        (b"\xff\tb\n", "line 1: not UTF-8"),
        (b"# nothing else\n\n", "no sentence"),
    ],
)
def test_bad_tagged_files_are_named(tmp_path: Path, text: bytes, message: str) -> None:
    (tmp_path / "t.tsv").write_bytes(text)
    with pytest.raises(InputError, match=message):
        read_tagged(tmp_path / "t.tsv")


def test_labeled_texts_and_pairs(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(b"1\tgood film\n0\tbad\n0\n1\tone\ttwo\n1\t\n\xff\tx\n")
    rows, bad = read_labeled(path)
    assert rows == [Labeled("1", ("good film",)), Labeled("0", ("bad",))]
    assert bad.lines == {"1 column": [3], "3 columns": [4], "an empty column": [5], "not UTF-8": [6]}
    path.write_text("NEUTRAL\ta man\ta boy\n")
    assert read_labeled(path)[0] == [Labeled("NEUTRAL", ("a man", "a boy"))]
    path.write_text("only\n")
    with pytest.raises(InputError, match=r"no usable row \(1 row skipped: 1 1 column"):
        read_labeled(path)
    with pytest.raises(InputError, match="line 1: 1 column"):
        read_labeled(path, on_bad="refuse")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "no\ta man\ta boy\n"),
        ("a.tsv", "premise\thypothesis\tlabel\na man\ta boy\tno\n"),
        ("a.csv", "id,label,sentence1,sentence2\n1,no,a man,a boy\n"),
        ("a.jsonl", '{"text_a": "a man", "text_b": "a boy", "label": "no"}\n'),
    ],
)
def test_labels_of_pairs_are_found_by_name(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_labeled(tmp_path / name)[0] == [Labeled("no", ("a man", "a boy"))]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "3.5\ta man\ta boy\n-1\tone\ttwo\n"),
        ("a.tsv", "sentence1\tsentence2\tscore\na man\ta boy\t3.5\none\ttwo\t-1\n"),
        ("a.csv", "id,text1,text2,similarity\n1,a man,a boy,3.5\n2,one,two,-1\n"),
        ("a.csv", "wert,links,rechts\n3.5,a man,a boy\n-1,one,two\n"),
        (
            "a.jsonl",
            '{"score": 3.5, "text1": "a man", "text2": "a boy"}\n{"score": -1, "text1": "one", "text2": "two"}\n',
        ),
    ],
)
def test_scores_and_pairs_are_found_by_name(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_scored(tmp_path / name)[0] == [Scored(3.5, ("a man", "a boy")), Scored(-1, ("one", "two"))]


def test_bad_rows_of_scored_pairs(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(b"1\ta\tb\n2\ta\nhigh\ta\tb\nnan\ta\tb\ninf\ta\tb\n3\t\tb\n4\ta\tb\tc\n\xff\ta\tb\n")
    rows, bad = read_scored(path)
    assert rows == [Scored(1.0, ("a", "b"))]
    assert bad.lines == {
        "2 columns": [2], "no score that is a number": [3, 4, 5], "an empty column": [6], "4 columns": [7],
        "not UTF-8": [8],
    }  # fmt: skip
    with pytest.raises(InputError, match="line 2: 2 columns"):
        read_scored(path, on_bad="refuse")
    path.write_text("a\tb\n")
    with pytest.raises(InputError, match=r"no usable row \(1 row skipped: 1 2 columns"):
        read_scored(path)


# Counts


def test_words_of_raw_text_are_counted_as_the_featurizer_cuts_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The cat, the Cat.\n\nDon't\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"the end\n"))
    out = tmp_path / "counts.txt.gz"
    result = research("count", tmp_path / "a.txt", tmp_path / "b.txt.gz", "-o", out, "--min-count", "2")
    assert (result.exit_code, result.stdout) == (0, f"{out}: 2 words, 5 counted\n")
    assert gzip.decompress(out.read_bytes()).decode() == "the 3\ncat 2\n"
    first = out.read_bytes()
    assert research("count", tmp_path / "a.txt", tmp_path / "b.txt.gz", "-o", out, "--min-count", "2").exit_code == 0
    assert out.read_bytes() == first
    assert research("count", tmp_path / "a.txt", "-o", tmp_path / "all.txt").exit_code == 0
    assert (tmp_path / "all.txt").read_text().splitlines()[2:] == ["' 1", ", 1", ". 1", "don 1", "t 1"]
    assert "lower --min-count" in sentence(research("count", tmp_path / "a.txt", "-o", out, "--min-count", "9"))


def test_counts_do_not_depend_on_where_the_texts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"a b{i % 7} c{i % 3}é" for i in range(50)]
    spec = FeatureSpec(orders=(), words=True)
    whole = count_words(texts, spec)
    monkeypatch.setattr("gramvec_training.data.vocabulary.CHUNK_TEXTS", 3)
    assert count_words(iter(texts), spec) == whole
    assert whole["a"] == 50


def test_documents_with_a_word() -> None:
    vocabulary = Vocabulary.build([Entry("word", word, 1) for word in ("a", "b", "c")])
    featurizer = Featurizer(FeatureSpec(orders=(), words=True), vocabulary)
    assert count_documents(["a a b", "b", "", "x", "a"], featurizer, 3, chunk=2).tolist() == [2, 2, 0]


def test_texts_of_similarity_sets(tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text("1.0\ta cat\ta dog\n2.0\ta cat\tthe end\n")
    (tmp_path / "two.tsv").write_text("1.0\tx y\tz z\n")
    source = TextSource(path=tmp_path / "one.tsv", layout="similarity")
    assert read_source_texts(source, Path()) == ["a cat", "a dog", "a cat", "the end"]
    assert read_source_texts(TextSource(path=tmp_path, layout="similarity"), Path())[-2:] == ["x y", "z z"]


# SIF's other weights, and its components of each set


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sif")
    save(path)
    (path / "freq.txt").write_text("the 60\ncat 20\ndog 10\nran 10\n")
    (path / "sets").mkdir()
    rows = ["the cat sat\tthe dog ran", "the dog\tdog ran", "cat\tthe cat", "sat ran\tran", "the\tcat dog"]
    (path / "sets/s.tsv").write_text("".join(f"{score}.0\t{row}\n" for score, row in enumerate(rows)))
    return path


def built(folder: Path, name: str, *options: str | Path) -> Path:
    sources = ["--vectors", folder / "v.npy", "--freq", folder / "freq.txt", "--components", "0"]
    result = call("sif", *sources, *options, "--out", folder / name)
    assert result.exit_code == 0, result.output
    return folder / name


def weights_of(run: Path) -> dict[str, float]:
    found = load_run(run)
    table = found.encoder.arrays()["table"]
    entries = found.vocabulary.entries()
    places = {entry.text: row for row, entry in enumerate(entries)}
    return {word: float(table[places[word]] @ VECTORS[i] / (VECTORS[i] @ VECTORS[i])) for i, word in enumerate(WORDS)}


def test_inverse_document_frequencies_by_hand(folder: Path) -> None:
    weights = weights_of(built(folder, "idf", "--weights", "idf", "--documents", folder / "sets"))
    # Ten sentences of both sides, of which so many hold each word.
    for word, containing in {"the": 5, "cat": 4, "dog": 4, "sat": 2, "ran": 4}.items():
        assert weights[word] == pytest.approx(math.log(11 / (1 + containing)), rel=1e-5)
    assert weights_of(built(folder, "none", "--weights", "none")) == pytest.approx(dict.fromkeys(WORDS, 1.0))
    refused = call("sif", "--vectors", "v", "--freq", "f", "--components", "0", "--weights", "idf", "--out", "x")
    assert (refused.exit_code, "give both or neither" in refused.stderr) == (2, True)


def test_unknown_words_have_the_last_vector_and_its_weight(folder: Path) -> None:
    run = load_run(built(folder, "row", "--unknown-words", "row", "-a", "0.1"))
    assert run.vocabulary.unknown_row == 5
    weight = 0.1 / (0.1 + 0.1)  # of "ran", which stands last in the file
    np.testing.assert_allclose(run.encoder.arrays()["table"][5], weight * VECTORS[4], rtol=1e-5)
    result = call("export", folder / "row", "-o", folder / "bundle")
    assert result.exit_code == 0, result.output
    embedder = gramvec.load(folder / "bundle", device="cpu")
    np.testing.assert_allclose(embedder.embed(["zzz"], normalize=False)[0], weight * VECTORS[4], rtol=1e-5)


@pytest.mark.parametrize("sides", ["both", "each"])
def test_components_of_a_set_by_hand(folder: Path, sides: Any) -> None:
    run = built(folder, f"plain-{sides}", "--weights", "none")
    result = call(
        "evaluate", run, "--sets", folder / "sets", "--components-of-sets", "1", "--of-sides", sides, "--json", "-"
    )
    assert result.exit_code == 0, result.output
    (report,) = orjson.loads(result.stdout).values()
    rows = [line.split("\t") for line in (folder / "sets/s.tsv").read_text().splitlines()]

    def mean(text: str) -> np.ndarray:
        return np.mean([VECTORS[WORDS.index(word)] for word in text.split()], axis=0).astype(np.float64)

    left, right = (np.array([mean(row[side]) for row in rows]) for side in (1, 2))

    def without(vectors: np.ndarray, of: np.ndarray) -> np.ndarray:
        u = np.linalg.svd(of, full_matrices=False)[2][0]
        return vectors - np.outer(vectors @ u, u)

    both = np.concatenate([left, right])
    a, b = without(left, left if sides == "each" else both), without(right, right if sides == "each" else both)
    cosines = np.einsum("nd,nd->n", a, b) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    expected = 100 * np.corrcoef(cosines, [float(row[0]) for row in rows])[0, 1]
    assert report["tasks"]["sets"]["sets"]["s"]["pearson"] == pytest.approx(expected, abs=1e-3)
    assert (report["components_of_sets"], report["of_sides"]) == (1, sides)
    assert call("evaluate", run, "--sets", folder / "sets", "--of-sides", "each").exit_code == 2


def test_what_is_not_known_stays_at_zero() -> None:
    vocabulary = Vocabulary.build([Entry("word", "a", 1)])
    featurizer = Featurizer(FeatureSpec(orders=(), words=True), vocabulary)
    vectors = {"x": [1.0, 1.0], "y": [1.0, -1.0], "z": [2.0, 0.5], "": [0.0, 0.0]}

    def encode(texts: Any) -> np.ndarray:
        return np.array([vectors[text] for text in texts], np.float32)

    model = ScoredModel("m", featurizer, encode, lambda left, right: np.zeros(len(left)))
    removed = remove_components_of_sets(model, 1, "both")
    found = removed.similarity(["x", "y", ""], ["z", "z", "x"])
    assert found[2] == 0
    assert np.abs(found).max() <= 1 + 1e-9
    one = SimilaritySet("t", "s", np.array([1.0, 2.0, 3.0]), ["x", "y", ""], ["z", "z", "x"])
    report = evaluate_models([removed], ["r"], [one])["r"]
    assert report["tasks"]["t"]["sets"]["s"]["pairs"] == 3


def test_a_run_scores_as_its_bundle(folder: Path) -> None:
    run = built(folder, "both-ways")
    assert call("export", run, "-o", folder / "both-ways-bundle").exit_code == 0
    result = call("evaluate", run, folder / "both-ways-bundle", "--sets", folder / "sets", "--json", "-")
    one, other = orjson.loads(result.stdout).values()
    assert one["tasks"]["sets"]["mean"]["pearson"] == pytest.approx(other["tasks"]["sets"]["mean"]["pearson"], abs=1e-3)
    assert one["coverage"] == other["coverage"]
    assert one["parameters"] == {"table": 20}
