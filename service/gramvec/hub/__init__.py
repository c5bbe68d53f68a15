"""Bundles to and from a model hub, through huggingface_hub. Every downloaded bundle is checked as untrusted."""

from __future__ import annotations

from gramvec.hub.models import PullResult, PushResult, pull, push

__all__ = ["PullResult", "PushResult", "pull", "push"]
