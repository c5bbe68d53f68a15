"""Concurrent requests into calls of the model, and their answers back: queues, their bounds, and who waits how long.

May import embedding and below. A new rule of who is refused is a function in `refusals`; nothing here knows HTTP.
"""

from __future__ import annotations

from gramvec.batching.batcher import LOOP_SECONDS, QUEUE_CHARACTERS, Answer, Batcher
from gramvec.batching.calls import CallRecord
from gramvec.batching.task_free import TaskFree

__all__ = [
    "LOOP_SECONDS",
    "QUEUE_CHARACTERS",
    "Answer",
    "Batcher",
    "CallRecord",
    "TaskFree",
]
