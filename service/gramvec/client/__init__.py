"""Clients of a gramvec service, over httpx: `Client`, and `AsyncClient` for event loops."""

from __future__ import annotations

from gramvec.client.async_client import AsyncClient
from gramvec.client.client import Client, MatchedPair, PredictedLabel, SearchHit
from gramvec.embed.reranking import RerankedText

__all__ = ["AsyncClient", "Client", "MatchedPair", "PredictedLabel", "RerankedText", "SearchHit"]
