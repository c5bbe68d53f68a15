"""Indexes behind the retrievers: opened by their folder, or passed open, and what they find as texts with the rest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from gramvec.errors import InputError
from gramvec.jobs.search.documents import text_in
from gramvec.jobs.search.index import Index, check_min_score, check_page

IndexOrFolder = Index | str | os.PathLike[str]
# Options of a search that a retriever has for all its queries, and takes for one.
OPTIONS = ("k", "where", "only", "min_score", "literal")


class FoundText(NamedTuple):
    """A document that an index has found: its id, its score, its text, and what else is stored with it."""

    id: str
    score: float
    text: str
    others: dict[str, Any]


def open_index(index: IndexOrFolder) -> Index:
    """Return an open index. Raises InputError for what is neither one nor its folder, and as `Index` does."""
    if isinstance(index, Index):
        return index
    if not isinstance(index, str | os.PathLike):
        raise InputError(
            f"index: must be a gramvec.Index or its folder, got {type(index).__name__}; give what gramvec index build"
            " wrote",
            field="index",
        )
    return Index(index)


def check_options(index: Index, options: Mapping[str, Any]) -> None:
    """Raise InputError for an option of a search that is unknown or not valid, before there is a query."""
    for name in options:
        if name not in OPTIONS:
            raise InputError(f"{name}: is no option of a search; there are {', '.join(OPTIONS)}", field=name)
    check_page(options.get("k", 1), 0)
    check_min_score(options.get("min_score", 0.0))
    index.search([], **options)  # all others


def find_texts(index: Index, query: str, options: Mapping[str, Any]) -> list[FoundText]:
    """Return what a search finds, the best first. Long queries are cut. Raises as `Index.search` does."""
    found = []
    for hit in index.search([query], **options, truncate=True)[0]:
        others = {name: value for name, value in hit.record.items() if name not in index.manifest.columns}
        found.append(FoundText(hit.id, hit.score, text_in(hit.record, index.manifest), others))
    return found
