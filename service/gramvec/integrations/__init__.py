"""Interfaces of other libraries over a gramvec model, or an index of one.

Each name imports its library on first use and reports a missing one. A new library is a file here with its names in
`_WHERE`, and a test that runs the real library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gramvec.errors import InputError

if TYPE_CHECKING:
    from gramvec.integrations.bertopic import BertopicBackend
    from gramvec.integrations.haystack import HaystackDocumentEmbedder, HaystackTextEmbedder
    from gramvec.integrations.langchain import LangChainEmbeddings, LangChainRetriever
    from gramvec.integrations.llama_index import LlamaIndexEmbedding, LlamaIndexRetriever
    from gramvec.integrations.mteb import MtebEncoder, mteb_meta
    from gramvec.integrations.scikit_learn import TextEmbedder
    from gramvec.integrations.stores.chroma import ChromaEmbeddingFunction
    from gramvec.integrations.stores.duckdb import register_duckdb
    from gramvec.integrations.stores.lancedb import LanceEmbeddingFunction
    from gramvec.integrations.stores.polars import register_polars
    from gramvec.integrations.stores.word_vectors import save_word_vectors

__all__ = [
    "BertopicBackend",
    "ChromaEmbeddingFunction",
    "HaystackDocumentEmbedder",
    "HaystackTextEmbedder",
    "LanceEmbeddingFunction",
    "LangChainEmbeddings",
    "LangChainRetriever",
    "LlamaIndexEmbedding",
    "LlamaIndexRetriever",
    "MtebEncoder",
    "TextEmbedder",
    "mteb_meta",
    "register_duckdb",
    "register_polars",
    "save_word_vectors",
]

# The module of each name, and the packages that it needs.
_WHERE = {
    "BertopicBackend": ("bertopic", "bertopic"),
    "ChromaEmbeddingFunction": ("stores.chroma", "chromadb"),
    "HaystackDocumentEmbedder": ("haystack", "haystack-ai"),
    "HaystackTextEmbedder": ("haystack", "haystack-ai"),
    "LanceEmbeddingFunction": ("stores.lancedb", "lancedb"),
    "LangChainEmbeddings": ("langchain", "langchain-core"),
    "LangChainRetriever": ("langchain", "langchain-core"),
    "LlamaIndexEmbedding": ("llama_index", "llama-index-core"),
    "LlamaIndexRetriever": ("llama_index", "llama-index-core"),
    "MtebEncoder": ("mteb", "mteb"),
    "TextEmbedder": ("scikit_learn", "scikit-learn"),
    "mteb_meta": ("mteb", "mteb"),
    "register_duckdb": ("stores.duckdb", "duckdb pyarrow"),
    "register_polars": ("stores.polars", "polars"),
    "save_word_vectors": ("stores.word_vectors", "numpy"),
}


def __getattr__(name: str) -> Any:
    """Import a public name with its library. Raises InputError if that is not installed."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, package = _WHERE[name]
    try:
        return getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("gramvec"):
            raise
        sentence = f"{name}: needs {package}, but there is no module {error.name}: pip install {package}"
        raise InputError(sentence) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
