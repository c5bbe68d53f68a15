"""Clients of a gramvec service, over httpx: `Client`, and `AsyncClient` for event loops."""

from __future__ import annotations

from gramvec.client.async_client import AsyncClient
from gramvec.client.client import Client, MatchedPair, PredictedLabel, SearchHit
from gramvec.embed.reranking import RerankedText

__all__ = ["AsyncClient", "Client", "MatchedPair", "PredictedLabel", "RerankedText", "SearchHit"]

_RENAMED = {"Hit": "SearchHit", "Label": "PredictedLabel", "Match": "MatchedPair", "Ranked": "RerankedText"}


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        raise ImportError(f"gramvec.client.{name} is called {_RENAMED[name]} since 0.2.0")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
