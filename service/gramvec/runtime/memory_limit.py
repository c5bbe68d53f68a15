"""A bound on the memory that graphs take in onnxruntime: one that asks for more fails, with a sentence.

The operators of a bundle's graph are looked through when it is opened (gramvec.bundle), but what a product or a shape
comes to is known only when they run.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

log = logging.getLogger("gramvec.runtime")

# Of the memory that there is. A text of 65,536 characters takes 2 GB in a graph of 300 columns.
SHARE = 0.5

_lock, _registered = Lock(), False


def bound_memory(onnxruntime: ModuleType, options: Any) -> None:
    """Let the sessions made with these options take their memory from one arena of this process, which is bounded."""
    global _registered
    with _lock:
        if not _registered:
            kind = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR
            place = onnxruntime.OrtMemoryInfo("Cpu", kind, 0, onnxruntime.OrtMemType.DEFAULT)
            settings = onnxruntime.OrtArenaCfg({"max_mem": int(SHARE * _memory())})
            try:
                onnxruntime.create_and_register_allocator(place, settings)
            except Exception as error:  # the program around us has one of its own
                log.debug("onnxruntime keeps its arena: %s", error)
            _registered = True
    options.add_session_config_entry("session.use_env_allocators", "1")


def _memory() -> int:
    """Bytes that this machine has, or the container that this process is in."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no such bound, or the word "max"
        return found
