"""LangChain's `Embeddings`, for any of its vector stores, and a retriever over an index of ours."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever

from gramvec.integrations.indexes import IndexOrFolder, check_options, find_texts, open_index
from gramvec.integrations.models import ModelOrName, embed_lists, open_model


class LangChainEmbeddings(Embeddings):
    """LangChain embeddings of length 1. Queries and documents are embedded alike; long texts are cut.

    Args:
        model: A name, a folder, an Embedder or a Client.
        dimensions: Number of leading columns; None for all.
    """

    def __init__(self, model: ModelOrName = "gramvec-en", *, dimensions: int | None = None) -> None:
        self.model = model
        self.dimensions = dimensions
        open_model(model)  # a wrong name is reported early

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text. Raises InputError for anything that is not a text."""
        return embed_lists(self.model, texts, self.dimensions)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text."""
        return self.embed_documents([text])[0]


class LangChainRetriever(BaseRetriever):
    """LangChain retriever of the documents that `gramvec.Index.search` finds, by letters and meaning, the best first.

    A document has the row's text and id; its metadata are the row's other columns and its score, as `score`
    (`gramvec_score` where the row has such a column). Long queries are cut.

    Args:
        index: A gramvec.Index, or its folder.
        k: Documents for a query, at most.
        options: `where`, `only`, `min_score` and `literal` of Index.search; one call may have others, as in
            `retriever.invoke("lost parcel", k=3, where={"team": "post"})`. And fields of BaseRetriever.
    """

    index: Any
    k: int = 10
    options: dict[str, Any]

    def __init__(self, index: IndexOrFolder, *, k: int = 10, **options: Any) -> None:
        base = {name: options.pop(name) for name in [*options] if name in BaseRetriever.model_fields}
        opened = open_index(index)
        check_options(opened, {"k": k, **options})
        super().__init__(index=opened, k=k, options=options, **base)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        wanted = {"k": self.k, **self.options, **options}
        check_options(self.index, wanted)
        return [
            Document(
                page_content=found.text,
                id=found.id,
                metadata=found.others | {"gramvec_score" if "score" in found.others else "score": found.score},
            )
            for found in find_texts(self.index, query, wanted)
        ]
