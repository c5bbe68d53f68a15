"""Blocks of work in this process, or on the machines of Ray or Spark, with the same results in the same order.

    engine = open_engine("ray")
    shared = engine.share(index)
    for found in engine.map(search, shared, blocks):
        ...

`work(shared, block)` is a function of a module. What it needs of whole tables is shared: it travels once, not with each
block. The other machines need the same gramvec, and for the same bytes the same numpy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Literal, get_args

from gramvec.errors import InputError, import_extra

EngineName = Literal["ray", "spark"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
# Blocks that are on their way for each core of an engine: so few that those of large tables take no memory.
AHEAD = 2


class Engine:
    """Engine that works in this process, one block after the other."""

    def share(self, value: Any) -> Any:
        """Return what stands for a value that all blocks need, for `map`."""
        return value

    def map(self, work: Callable[[Any, Any], Any], shared: Any, blocks: Iterable[Any]) -> Iterator[Any]:
        """Yield what `work` makes of the shared value and each block, in the order of the blocks.

        Args:
            work: a function of a module.
            shared: of `share`.
            blocks: any iterable; few of them are taken ahead of the results.
        """
        for block in blocks:
            yield work(shared, block)


class RayEngine(Engine):
    """Engine of tasks of Ray: of the cluster that this process is connected to, or else of this machine."""

    def __init__(self) -> None:
        self._ray = import_extra("ray", "ray", "the engine ray")
        if not self._ray.is_initialized():
            self._ray.init(log_to_driver=False, include_dashboard=False, logging_level="error")

    def share(self, value: Any) -> Any:
        """Put a value into Ray's object store."""
        return self._ray.put(value)

    def map(self, work: Callable[[Any, Any], Any], shared: Any, blocks: Iterable[Any]) -> Iterator[Any]:
        """Yield as of `Engine`: each block is a task of one core."""
        task = self._ray.remote(work)
        most = AHEAD * max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        waiting: deque[Any] = deque()
        for block in blocks:
            waiting.append(task.remote(shared, block))
            if len(waiting) > most:
                yield self._ray.get(waiting.popleft())
        while waiting:
            yield self._ray.get(waiting.popleft())


class SparkEngine(Engine):
    """Engine of tasks of Spark: of the session that this process has, or else of one that it makes. Not of Connect."""

    def __init__(self) -> None:
        sql = import_extra("pyspark.sql", None, "the engine spark")
        self._context = sql.SparkSession.builder.getOrCreate().sparkContext

    def share(self, value: Any) -> Any:
        """Broadcast a value."""
        return self._context.broadcast(value)

    def map(self, work: Callable[[Any, Any], Any], shared: Any, blocks: Iterable[Any]) -> Iterator[Any]:
        """Yield as of `Engine`: each block is a task."""
        rest = iter(blocks)
        while some := list(islice(rest, AHEAD * max(self._context.defaultParallelism, 1))):
            done = self._context.parallelize(some, len(some)).map(_SparkWork(work, shared))
            yield from done.collect()


class _SparkWork:
    """Work on a block beside a broadcast value."""

    def __init__(self, work: Callable[[Any, Any], Any], shared: Any) -> None:
        self._work, self._shared = work, shared

    def __call__(self, block: Any) -> Any:
        return self._work(self._shared.value, block)


HERE = Engine()


def open_engine(name: EngineName | None) -> Engine:
    """Return the engine of a name, or that of this process for None.

    Raises:
        InputError: there is none of this name, or its library is not installed.
    """
    if name is None:
        return HERE
    kinds: dict[str, type[Engine]] = {"ray": RayEngine, "spark": SparkEngine}
    if name not in kinds:
        raise InputError(f"engine: must be {' or '.join(map(repr, ENGINES))}, got {name!r}", field="engine")
    return kinds[name]()
