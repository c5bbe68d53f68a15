"""Bundles to a model hub and back, through huggingface_hub: a repository a model, checked as a stranger's on arrival.

May import embedding and below. A new refusal of the hub's is put into words in `refusals`.
"""

from __future__ import annotations

from gramvec.hub.pulling import Pulled, pull
from gramvec.hub.pushing import Pushed, push

__all__ = [
    "Pulled",
    "Pushed",
    "pull",
    "push",
]
