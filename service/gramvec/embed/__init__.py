"""Texts to vectors: the library, from a model's name or folder to a finished matrix.

A new way to finish vectors is a function in `vectors`.
"""

from __future__ import annotations

from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load

__all__ = ["Embedder", "load"]
