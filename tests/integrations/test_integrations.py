"""gramvec.integrations, each against the real library; what is not installed is skipped (make test-integrations)."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import MODELS
from gramvec import Embedder, Index, integrations
from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.client import Client
from gramvec.errors import BundleError, InputError
from gramvec.integrations import models
from gramvec.integrations.models import MAX_OPEN, embed_texts, name_to_store, open_model
from gramvec.server.settings import Settings
from gramvec_training.evaluation.ranking import DEPTH, find_retrieval_sets, ndcg
from support.errors import refused
from support.http import running

# The libraries warn of each other.
pytestmark = pytest.mark.filterwarnings("default")

TEXTS = ["cheap flights", "low-cost air fares", "ripe bananas", "a yellow fruit"]
FOLDER = str(MODELS / DEFAULT_MODEL)
RETRIEVAL = Path(os.environ.get("GRAMVEC_DATA", "/nonexistent")) / "dev" / "retrieval" / "adi"


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """No library tells its makers of the tests, or asks a network."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
            patch.setenv(name, "1")
        patch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
        yield


def needs(*modules: str) -> Any:
    """The first of these, or a skip with a reason."""
    found = [pytest.importorskip(one, reason=f"{one} is not installed: make test-integrations") for one in modules]
    return found[0]


def test_import_gramvec_brings_no_neighbor_and_a_missing_one_is_named() -> None:
    script = (
        "import sys, gramvec\n"
        "neighbors = ['sklearn', 'langchain_core', 'chromadb', 'duckdb', 'polars', 'mteb', 'bertopic']\n"
        "print(any(one in sys.modules for one in neighbors), 'gramvec.integrations' in sys.modules)\n"
        "print(gramvec.integrations.__name__, any(one in sys.modules for one in neighbors))\n"
        "sys.modules['bertopic'] = None\n"
        "from gramvec.integrations import BertopicBackend\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "False False\ngramvec.integrations False\n"
    said = "BertopicBackend: needs bertopic, but there is no module bertopic"
    assert done.stderr.splitlines()[-1].startswith(f"gramvec.errors.InputError: {said}")
    assert done.stderr.splitlines()[-1].endswith(": pip install bertopic")
    with refused(AttributeError, "'Nothing'"):
        integrations.Nothing  # noqa: B018


def test_every_name_is_in_its_module() -> None:
    folder = Path(str(integrations.__file__)).parent
    for name, (module, _) in integrations._WHERE.items():
        text = (folder / f"{module.replace('.', '/')}.py").read_text()
        assert f"def {name}(" in text or f"class {name}(" in text
    assert sorted(integrations._WHERE) == sorted(integrations.__all__)


def test_a_model_is_opened_once_a_process_by_name_or_taken_as_it_is(embedder: Embedder) -> None:
    assert open_model(FOLDER) is open_model(Path(FOLDER))
    assert open_model(embedder) is embedder
    assert embed_texts(FOLDER, iter(TEXTS)).tobytes() == embedder.embed(TEXTS).tobytes()
    assert embed_texts(embedder, [], dimensions=3).shape == (0, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "BLOCK", 3)
        assert embed_texts(embedder, np.array(TEXTS)).tobytes() == embedder.embed(TEXTS).tobytes()
    assert name_to_store(embedder) == str(embedder.bundle.path)
    assert MAX_OPEN >= 2
    with pytest.raises(InputError, match="model: .*int"):
        open_model(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="dimensions.* 1 to 300"):
        embed_texts(embedder, TEXTS, dimensions=301)
    with refused(InputError, "stored", "name or folder"):
        name_to_store(3)  # type: ignore[arg-type]


def test_scikit_learn_takes_it_into_pipelines_copies_and_searches(embedder: Embedder) -> None:
    needs("sklearn")
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    embeds = integrations.TextEmbedder(FOLDER)
    assert embeds.fit_transform(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()
    assert embeds.transform(np.array(TEXTS)).tobytes() == embedder.embed(TEXTS).tobytes()
    assert list(clone(embeds).set_params(dimensions=2).get_feature_names_out()) == ["gramvec0", "gramvec1"]
    assert len(embeds.get_feature_names_out(["text"])) == 300
    labels = [0, 0, 1, 1] * 3
    search = GridSearchCV(
        make_pipeline(integrations.TextEmbedder(FOLDER), LogisticRegression()),
        {"textembedder__dimensions": [8, 64], "textembedder__normalize": [True, False]},
        cv=2,
        n_jobs=2,
    )
    search.fit(TEXTS * 3, labels)
    assert search.predict(["chep flihgts", "bananna"]).tolist() == [0, 1]
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert again.predict_proba(TEXTS).tobytes() == search.best_estimator_.predict_proba(TEXTS).tobytes()
    assert copy.deepcopy(embeds).transform(TEXTS).tobytes() == embeds.transform(TEXTS).tobytes()
    copied = clone(integrations.TextEmbedder(embedder))
    assert copied.transform(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()
    with refused(BundleError, "'no-such-model'"):
        integrations.TextEmbedder("no-such-model").fit(TEXTS)
    with pytest.raises(InputError, match="text 1 is missing"):
        embeds.transform(["a", None])  # type: ignore[list-item]


def test_scikit_learn_names_its_columns_in_a_frame() -> None:
    pandas = needs("pandas", "sklearn")
    from sklearn.compose import make_column_transformer

    columns = make_column_transformer((integrations.TextEmbedder(FOLDER, dimensions=3), "title"))
    frame = columns.set_output(transform="pandas").fit_transform(pandas.DataFrame({"title": TEXTS}, index=[4, 3, 2, 1]))
    assert list(frame.columns) == [f"textembedder__gramvec{column}" for column in range(3)]
    assert (list(frame.index), frame.to_numpy().shape) == ([4, 3, 2, 1], (4, 3))


def test_langchain_searches_with_it(embedder: Embedder) -> None:
    needs("langchain_core")
    from langchain_core.vectorstores import InMemoryVectorStore

    embeddings = integrations.LangChainEmbeddings(FOLDER)
    assert embeddings.embed_documents(TEXTS) == embedder.embed(TEXTS).tolist()
    assert embeddings.embed_query(TEXTS[0]) == asyncio.run(embeddings.aembed_query(TEXTS[0]))
    assert len(integrations.LangChainEmbeddings(embedder, dimensions=7).embed_query("x")) == 7
    assert embeddings.embed_documents([]) == []
    store = InMemoryVectorStore.from_texts(TEXTS, embeddings)
    assert store.similarity_search("chep flihgts", k=1)[0].page_content == TEXTS[0]
    with refused(BundleError, "'no-such-model'"):
        integrations.LangChainEmbeddings("no-such-model")


RECORDS = [
    {"key": "a", "text": "lost parcel", "team": "post", "score": 3},
    {"key": "b", "text": "parcel is late", "team": "post"},
    {"key": "c", "text": "reset my password", "team": "web"},
]


@pytest.fixture(scope="module")
def index(embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Index:
    needs("tantivy")
    return Index.build(tmp_path_factory.mktemp("index") / "x.index", RECORDS, model=embedder, id="key", filter=["team"])


def wrong_options(make: Any, index: Index) -> None:
    for options, names in (
        ({"where": {"text": "x"}}, ["team"]),
        ({"only": "both"}, ["only"]),
        ({"min_score": -1}, ["min_score"]),
        ({"filters": {}}, ["filters", "where"]),
    ):
        with refused(InputError, *names):
            make(index, **options)
    with refused(InputError, "index", "int"):
        make(3)
    with refused(InputError, "not an index"):
        make(str(index.path.with_name("none")))


def test_langchain_retrieves_what_the_index_finds(index: Index) -> None:
    needs("langchain_core")
    from langchain_core.runnables import RunnableLambda

    retriever = integrations.LangChainRetriever(str(index.path), k=2, tags=["mine"])
    found = retriever.invoke("parcle lost")
    expected = index.search("parcle lost", 2)[0]
    assert [(one.id, one.page_content) for one in found] == [(hit.id, hit.record["text"]) for hit in expected]
    assert found[0].metadata == {"key": "a", "team": "post", "score": 3, "gramvec_score": expected[0].score}
    assert found[1].metadata == {"key": "b", "team": "post", "score": expected[1].score}
    assert asyncio.run(retriever.ainvoke("parcle lost")) == found
    assert [one.id for one in retriever.invoke("parcel", k=3, where={"team": "web"})] == ["c"]
    narrowed = integrations.LangChainRetriever(index, where={"team": ["post"]}, only="letters", min_score=0.1)
    assert {one.id for one in narrowed.invoke("parcel")} == {"a", "b"}
    assert retriever.batch(["parcel", ""])[1] == [] and retriever.invoke("\U0001f642") == []
    assert len(retriever.invoke("parcel " * 50_000)) == 2  # cut, as texts to embed are
    chain = retriever | RunnableLambda(lambda documents: documents[0].page_content)
    assert chain.invoke("pasword") == "reset my password"
    wrong_options(integrations.LangChainRetriever, index)
    with refused(InputError, "k"):
        integrations.LangChainRetriever(index, k=0)
    with refused(InputError, "k"):
        retriever.invoke("parcel", k="2")
    with refused(InputError, "int"):
        retriever.invoke(3)  # type: ignore[arg-type]


def test_llama_index_retrieves_what_the_index_finds(index: Index) -> None:
    needs("llama_index.core")
    from llama_index.core.schema import QueryBundle

    retriever = integrations.LlamaIndexRetriever(str(index.path), similarity_top_k=2)
    found = retriever.retrieve("parcle lost")
    expected = index.search("parcle lost", 2)[0]
    assert [(one.node_id, one.text, one.score) for one in found] == [
        (hit.id, hit.record["text"], hit.score) for hit in expected
    ]
    assert found[0].metadata == {"key": "a", "team": "post", "score": 3}
    assert asyncio.run(retriever.aretrieve(QueryBundle("parcle lost"))) == found
    assert retriever.retrieve("") == []
    narrowed = integrations.LlamaIndexRetriever(index, where={"team": "web"})
    assert [one.node_id for one in narrowed.retrieve("parcel")] == ["c"]
    wrong_options(integrations.LlamaIndexRetriever, index)
    with refused(InputError, "k"):
        integrations.LlamaIndexRetriever(index, similarity_top_k=0)


@pytest.mark.skipif(not RETRIEVAL.is_dir(), reason="GRAMVEC_DATA has no dev/retrieval/adi")
def test_retrievers_rank_as_the_index_does_and_better_than_meaning_alone(embedder: Embedder, tmp_path: Path) -> None:
    needs("tantivy", "langchain_core", "llama_index.core")
    from langchain_core.vectorstores import InMemoryVectorStore

    (one,) = find_retrieval_sets(RETRIEVAL)
    built = Index.build(tmp_path / "x.index", one.documents, model=embedder)  # ids count from 1
    store = InMemoryVectorStore.from_texts(
        one.documents, integrations.LangChainEmbeddings(embedder), ids=[str(at + 1) for at in range(len(one.documents))]
    )
    langchain, llama_index = integrations.LangChainRetriever(built), integrations.LlamaIndexRetriever(built)

    def quality(ids_of: Any) -> float:
        found = [[int(given_id) - 1 for given_id in ids_of(query)] for query in one.queries]
        return float(np.mean([ndcg(places, grades, DEPTH) for places, grades in zip(found, one.grades, strict=True)]))

    expected = quality(lambda query: [hit.id for hit in built.search([query], 10, truncate=True)[0]])
    assert quality(lambda query: [document.id for document in langchain.invoke(query)]) == expected
    assert quality(lambda query: [node.node_id for node in llama_index.retrieve(query)]) == expected
    assert expected > quality(lambda query: [document.id for document in store.similarity_search(query, k=10)])


def test_a_service_stands_in_for_a_model_where_nothing_is_written_down(embedder: Embedder) -> None:
    needs("langchain_core")
    with running(Settings(), embedder) as server, Client(server.url) as client:
        embeddings = integrations.LangChainEmbeddings(client)
        assert embeddings.embed_documents(TEXTS) == embedder.embed(TEXTS).tolist()
        assert (
            embed_texts(client, np.array(TEXTS), dimensions=3).tobytes()
            == embedder.embed(TEXTS, dimensions=3).tobytes()
        )
        with refused(InputError, "Client"):
            name_to_store(client)  # type: ignore[arg-type]


def test_llama_index_searches_with_it(embedder: Embedder) -> None:
    needs("llama_index.core")
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode

    model = integrations.LlamaIndexEmbedding(FOLDER)
    assert model.get_text_embedding_batch(TEXTS) == embedder.embed(TEXTS).tolist()
    assert model.get_query_embedding(TEXTS[0]) == asyncio.run(model.aget_query_embedding(TEXTS[0]))
    assert asyncio.run(model.aget_text_embedding_batch(TEXTS)) == embedder.embed(TEXTS).tolist()
    assert model.to_dict()["model_name"] == FOLDER
    assert (
        len(integrations.LlamaIndexEmbedding.from_dict({**model.to_dict(), "dimensions": 5}).get_text_embedding("x"))
        == 5
    )
    index = VectorStoreIndex([TextNode(text=text) for text in TEXTS], embed_model=model)
    found = index.as_retriever(similarity_top_k=1).retrieve("chep flihgts")
    assert found[0].get_content() == TEXTS[0]


def test_haystack_runs_a_pipeline_with_it(embedder: Embedder) -> None:
    needs("haystack")
    from haystack import Document, Pipeline
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.components.writers import DocumentWriter
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    writing = Pipeline()
    writing.add_component("embedder", integrations.HaystackDocumentEmbedder(FOLDER))
    writing.add_component("writer", DocumentWriter(store))
    writing.connect("embedder", "writer")
    given = [Document(content=text) for text in TEXTS]
    writing.run({"embedder": {"documents": [*given, Document(content=None, meta={"a": 1})]}})
    assert given[0].embedding is None
    stored = {one.content: one.embedding for one in store.filter_documents()}
    assert [stored[text] for text in TEXTS] == embedder.embed(TEXTS).tolist()
    asking = Pipeline()
    asking.add_component("embedder", integrations.HaystackTextEmbedder(FOLDER))
    asking.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=1))
    asking.connect("embedder.embedding", "retriever.query_embedding")
    found = asking.run({"embedder": {"text": "chep flihgts"}})
    assert found["retriever"]["documents"][0].content == TEXTS[0]
    again = Pipeline.loads(asking.dumps(), allowed_modules=["gramvec.integrations.haystack"])
    assert again.get_component("embedder").model == FOLDER
    with refused(BundleError, "'no-such-model'"):
        integrations.HaystackTextEmbedder("no-such-model").warm_up()


def test_chroma_keeps_it_with_a_collection(embedder: Embedder, tmp_path: Path) -> None:
    chromadb = needs("chromadb")
    client = chromadb.PersistentClient(str(tmp_path), chromadb.Settings(anonymized_telemetry=False))
    made = client.create_collection("texts", embedding_function=integrations.ChromaEmbeddingFunction(FOLDER))
    made.add(ids=list("abcd"), documents=TEXTS)
    rows = made.get(["a"], include=["embeddings"])["embeddings"]
    np.testing.assert_allclose(rows[0], embedder.embed(TEXTS[:1])[0], atol=1e-6)
    again = client.get_collection("texts")
    found = again.query(query_texts=["chep flihgts"], n_results=1)
    assert found["ids"] == [["a"]]
    cosine = embedder.similarity(["chep flihgts"], TEXTS[:1])[0, 0]
    assert found["distances"][0][0] == pytest.approx(1 - cosine, abs=1e-5)
    with pytest.raises(InputError, match="names no model"):
        integrations.ChromaEmbeddingFunction.build_from_config({})
    with pytest.raises(ValueError, match="make another collection"):
        integrations.ChromaEmbeddingFunction(FOLDER).validate_config_update({"model": "a"}, {"model": "b"})


def test_lancedb_embeds_rows_and_queries_with_it(embedder: Embedder, tmp_path: Path) -> None:
    lancedb = needs("lancedb")
    from lancedb.embeddings import get_registry
    from lancedb.pydantic import LanceModel, Vector

    integrations.LanceEmbeddingFunction  # noqa: B018
    function = get_registry().get("gramvec").create(model=FOLDER)

    class Row(LanceModel):  # type: ignore[misc]
        text: str = function.SourceField()
        vector: Vector(function.ndims()) = function.VectorField()  # type: ignore[valid-type]

    table = lancedb.connect(tmp_path).create_table("texts", schema=Row)
    table.add([{"text": text} for text in TEXTS])
    found = (
        lancedb.connect(tmp_path).open_table("texts").search("chep flihgts").distance_type("cosine").limit(1).to_list()
    )
    assert found[0]["text"] == TEXTS[0]
    np.testing.assert_allclose(found[0]["vector"], embedder.embed(TEXTS[:1])[0], atol=1e-6)
    assert function.generate_embeddings(["a", None])[1] is None


def test_bertopic_finds_topics_with_it() -> None:
    needs("bertopic", "sklearn")
    from bertopic import BERTopic
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    texts = [f"{text} {number}" for number in range(10) for text in TEXTS]
    model = BERTopic(
        embedding_model=integrations.BertopicBackend(FOLDER),
        umap_model=PCA(4, random_state=0),
        hdbscan_model=KMeans(2, random_state=0, n_init=1),
    )
    topics, _ = model.fit_transform(texts)
    assert len(set(topics)) == 2
    assert topics[0::4] == topics[1::4] != topics[2::4]
    found, _ = model.find_topics("banana", top_n=1)
    assert found == [topics[2]]


@pytest.mark.parametrize("form", ["txt", "bin"])
def test_gensim_reads_word_vectors(form: Any, embedder: Embedder, tmp_path: Path) -> None:
    needs("gensim")
    from gensim.models import KeyedVectors

    words = ["vehicles", "cars", "bananas", "café", "new_york"]
    path = tmp_path / "words"
    assert integrations.save_word_vectors(words, path, model=FOLDER, form=form) == 5
    vectors = KeyedVectors.load_word2vec_format(str(path), binary=form == "bin")
    assert vectors.index_to_key == words
    assert vectors.vectors.tobytes() == embedder.embed(words).tobytes()
    assert vectors.most_similar("vehicles", topn=1)[0][0] == "cars"
    vectors.save(str(tmp_path / "words.kv"))
    assert KeyedVectors.load(str(tmp_path / "words.kv")).index_to_key == words


def test_spacy_reads_word_vectors(embedder: Embedder, tmp_path: Path) -> None:
    spacy = needs("spacy")
    integrations.save_word_vectors(["vehicles", "cars"], tmp_path / "words.txt", model=FOLDER)
    options = ["init", "vectors", "en", str(tmp_path / "words.txt"), str(tmp_path / "pipeline")]
    subprocess.run([sys.executable, "-m", "spacy", *options], check=True, capture_output=True)
    document = spacy.load(tmp_path / "pipeline")("vehicles")
    np.testing.assert_allclose(document[0].vector, embedder.embed(["vehicles"])[0], atol=1e-6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no words"),
        (["a", "new york"], "word 1"),
        (["a", ""], "word 1"),
        (["a", "b", "a"], "word 2"),
        (["a", None], "word 1 is of type NoneType; give str"),
        ("word", "wrap it in a list"),
    ],
)
def test_words_that_the_file_cannot_hold_leave_what_was_there(words: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("kept")
    with pytest.raises(InputError, match=said):
        integrations.save_word_vectors(words, path, model=FOLDER)
    with pytest.raises(InputError, match="form.*'txt'.*'bin'"):
        integrations.save_word_vectors(["a"], path, model=FOLDER, form="kv")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="lone surrogate"):
        integrations.save_word_vectors(["a", "\ud800"], path, model=FOLDER)
    assert [one.name for one in tmp_path.iterdir()] == ["words.txt"]
    assert path.read_text() == "kept"


def test_more_words_than_a_block_are_the_same_numbers(embedder: Embedder, tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(5_000)]
    integrations.save_word_vectors(words, tmp_path / "words.txt", model=embedder, dimensions=3)
    first, *lines = (tmp_path / "words.txt").read_text().splitlines()
    assert first == "5000 3"
    rows = np.array([line.split()[1:] for line in lines], np.float32)
    assert rows.tobytes() == embedder.embed(words, dimensions=3).tobytes()


def test_duckdb_has_functions_of_it(embedder: Embedder) -> None:
    duckdb = needs("duckdb", "pyarrow")
    connection = duckdb.connect()
    integrations.register_duckdb(connection, FOLDER)
    connection.execute("create table texts as select unnest(?) as text", [[*TEXTS, None]])
    rows = connection.execute("select text, gramvec_embed(text) from texts").fetchall()
    np.testing.assert_allclose([row for _, row in rows[:4]], embedder.embed(TEXTS), atol=1e-7)
    assert rows[4] == (None, None)
    ask = "select text, gramvec_similarity(text, 'chep flihgts') as score from texts order by score desc nulls last"
    (best, score), *_, last = connection.execute(ask).fetchall()
    assert (best, last) == (TEXTS[0], (None, None))
    assert score == pytest.approx(embedder.similarity(TEXTS[:1], ["chep flihgts"])[0, 0], abs=1e-6)
    many = connection.execute("select count(distinct gramvec_embed('text ' || i)) from range(5000) t(i)").fetchone()
    assert many == (5000,)
    assert connection.execute(
        "select count(*) from (select gramvec_embed(text) from texts where false)"
    ).fetchone() == (0,)


def test_polars_has_a_namespace_of_it(embedder: Embedder) -> None:
    pl = needs("polars")
    integrations.register_polars()
    integrations.register_polars()
    frame = pl.DataFrame({"text": [*TEXTS, None]})
    found = frame.lazy().with_columns(
        pl.col("text").gramvec.embed(FOLDER).alias("vector"),
        pl.col("text").gramvec.similarity("chep flihgts", FOLDER).alias("score"),
    ).collect()  # fmt: skip
    assert found.schema["vector"] == pl.Array(pl.Float32, 300)
    assert found["vector"].head(4).to_numpy().tobytes() == embedder.embed(TEXTS).tobytes()
    assert found["vector"][4] is None
    assert found["score"].to_list()[4] is None
    assert found["score"].to_list()[:4] == pytest.approx(embedder.similarity(TEXTS, ["chep flihgts"])[:, 0].tolist())
    assert frame["text"].head(0).gramvec.embed(FOLDER, dimensions=3).dtype == pl.Array(pl.Float32, 3)
    assert frame["text"].gramvec.embed(FOLDER, dimensions=3).len() == 5


PAIRS = [
    ("cheap flights", "low-cost air fares", 4.5),
    ("cheap flights", "cheap flihgts", 5.0),
    ("ripe bananas", "a yellow fruit", 2.5),
    ("ripe bananas", "the parliament voted", 0.0),
    ("a man plays chess", "two men are playing chess", 3.5),
    ("a man plays chess", "low-cost air fares", 0.5),
]


def test_mteb_evaluates_two_of_its_tasks_with_it(
    embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MTEB_CACHE", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    mteb = needs("mteb", "datasets")
    from datasets import Dataset
    from scipy.stats import spearmanr

    (tmp_path / "sts.jsonl").write_text(
        "".join(json.dumps(dict(zip(("sentence1", "sentence2", "score"), one, strict=True))) + "\n" for one in PAIRS)
    )
    similar = mteb.get_task("STS12")
    similar.dataset = {"test": Dataset.from_json(str(tmp_path / "sts.jsonl"), cache_dir=str(tmp_path))}
    similar.data_loaded = True
    found = mteb.get_task("SciFact")
    corpus = Dataset.from_dict({"id": list("abcd"), "title": [""] * 4, "text": TEXTS})
    queries = Dataset.from_dict({"id": ["1", "2"], "text": ["chep flihgts", "bananna"]})
    wanted = {"1": {"a": 1}, "2": {"c": 1}}
    split = {"corpus": corpus, "queries": queries, "relevant_docs": wanted, "top_ranked": None}
    found.dataset, found.data_loaded = {"default": {"test": split}}, True
    options = {"cache": None, "show_progress_bar": False, "co2_tracker": False}
    scores, ranks = (
        mteb.evaluate(integrations.MtebEncoder(FOLDER), task, **options).task_results[0] for task in (similar, found)
    )
    left, right, gold = zip(*PAIRS, strict=True)
    expected = spearmanr(embedder.pair_similarity(left, right), gold).statistic
    assert scores.scores["test"][0]["cosine_spearman"] == pytest.approx(expected, abs=1e-6)
    assert ranks.scores["test"][0]["ndcg_at_10"] == 1.0
    meta = integrations.mteb_meta(FOLDER)
    assert (meta.name, meta.revision, meta.embed_dim) == ("gramvec/gramvec-en", embedder.digest[:12], 300)
    assert meta.load_model().mteb_model_meta == meta
