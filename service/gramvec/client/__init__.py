"""A service over HTTP as if it were a model here: `Client`, `AsyncClient`, with httpx.

May import embedding and errors. A new thing to ask a service is a talk in `talks`; clients only carry it out.
"""

from __future__ import annotations

from gramvec.client.clients import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
