"""Bundles to and from a model hub, through huggingface_hub. Every downloaded bundle is checked as untrusted."""

from __future__ import annotations

from gramvec.hub.models import Pulled, Pushed, pull, push

__all__ = ["Pulled", "Pushed", "pull", "push"]
