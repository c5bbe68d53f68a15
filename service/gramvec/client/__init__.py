"""A service over HTTP as if it were a model here: `Client`, `AsyncClient`, with httpx.

May import embedding, sparse and errors. A new thing to ask is a talk in `talks` or `tasks`; clients only carry it out.
"""

from __future__ import annotations

from gramvec.client.awaited import AsyncClient
from gramvec.client.clients import Client
from gramvec.client.tasks import Hit, Label, Match, Ranked

__all__ = ["AsyncClient", "Client", "Hit", "Label", "Match", "Ranked"]
