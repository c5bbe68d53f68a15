"""POST /rows/add and /rows/remove: rows of a served index are added, replaced, removed, by who has the key for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gramvec.errors import InputError
from gramvec.server.errors import HttpError, index_busy_error, unhealthy_error
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import WriteRoute, model_router
from gramvec.server.openapi import DESCRIPTIONS, errors, ok
from gramvec.server.schemas import Body, Truncate
from gramvec.server.state.models import AttachedFile

if TYPE_CHECKING:
    from gramvec.embed.embedder import Embedder

# Ids of a request.
MAX_IDS = 10_000
# In characters of work: opening an index for writing and its commit, a row, and a character of one.
COMMIT_COST, ROW_COST, CHARACTER_COST = 300_000, 400, 4
# While a row is on its way into an index, memory holds so many bytes for each of its text: n-grams, vectors, tantivy's.
BYTES_TIMES = 8
# Seconds in which another writer may end before the request is refused.
PATIENCE_SECONDS = 5.0

JsonRow = dict[str, Any]
CHANGES = errors(
    *DESCRIPTIONS,
    e401="The write key is missing or wrong.",
    e403="No write key is set, without which no index is changed over HTTP.",
    e404="No index of that name is served.",
    e409="Another process is writing the index.",
    e422="A row or an id is not usable; the message names it, and nothing has changed.",
)


class AddRequest(Body):
    """Rows for an index."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"rows": [{"id": "9", "text": "my parcel is late"}]}]})

    rows: Annotated[list[JsonRow], Field(min_length=1, fail_fast=True)] = Field(
        description="Objects with the columns of the index's texts and ids, and whatever else is kept with them."
    )
    replace: bool | None = Field(
        True, description="Whether a row whose id is there takes the place of that row; else it is refused."
    )
    truncate: Truncate = None
    index: str | None = Field(None, description="Name of a served index; null for the first.")


class RemoveRequest(Body):
    """Ids of rows of an index."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["9"]}]})

    ids: Annotated[list[str], Field(min_length=1, max_length=MAX_IDS, fail_fast=True)] = Field(
        description="Of the rows to remove; those that are not there are left out."
    )
    index: str | None = Field(None, description="Name of a served index; null for the first.")


class ChangedIndex(BaseModel):
    """The response of /rows/add and /rows/remove. total: rows that the index has now."""

    index: str
    total: int


router = model_router("texts", WriteRoute)


@router.post("/rows/add", responses=ok("All rows are in the index, on its disk.", ChangedIndex) | CHANGES)
async def add_rows(work: ModelWork, body: AddRequest) -> ChangedIndex:
    """Add rows to a served index, all or none, as `gramvec index add` does; those whose id is there are replaced.

    The index must have a column of ids, so that the same request may be sent again. The rows are on the disk before
    the answer is sent, and the next search finds them in every worker.
    """
    from gramvec.jobs.search.changes import add_to_index
    from gramvec.jobs.search.index import spool_records

    service = work.service
    index = service.admit_index(body.index)
    embedder: Embedder = service.admit(index.model).embedder
    work.check_count(len(body.rows))
    _check_rows(body.rows, index)
    characters = sum(len(value) for row in body.rows for value in row.values() if isinstance(value, str))
    work.reserve(BYTES_TIMES * characters)
    truncate = service.settings.truncate == "on" if body.truncate is None else body.truncate

    def add() -> None:
        with spool_records(body.rows, index.held.manifest.columns) as source:
            add_to_index(
                embedder, index.path, source, form="jsonl", replace=body.replace is not False, truncate=truncate,
                threads=1, patience=PATIENCE_SECONDS,
            )  # fmt: skip

    cost = COMMIT_COST + ROW_COST * len(body.rows) + CHARACTER_COST * characters
    return await _change(work, index, add, cost)


@router.post("/rows/remove", responses=ok("None of the ids is in the index.", ChangedIndex) | CHANGES)
async def remove_rows(work: ModelWork, body: RemoveRequest) -> ChangedIndex:
    """Remove rows of a served index by their ids, as `gramvec index remove` does; the last one stays.

    The same request may be sent again: ids that are not there are left out. They are gone from the disk before the
    answer is sent, and the next search in any worker finds none of them.
    """
    from gramvec.jobs.search.changes import remove_from_index

    index = work.service.admit_index(body.index)

    def remove() -> None:
        remove_from_index(index.path, body.ids, if_there=True, patience=PATIENCE_SECONDS)

    return await _change(work, index, remove, COMMIT_COST + ROW_COST * len(body.ids))


async def _change(work: ModelWork, index: AttachedFile, change: Callable[[], None], cost: int) -> ChangedIndex:
    """Change an index in the thread for changes, and return what it is then."""

    def make() -> None:
        with _named_as_sent(index):
            change()

    with work.admit("changes of indexes", cost) as job:
        await job.run(make)
    await work.count_job(job, work.service.admit(index.model))
    changed = await work.service.current_index(index.name)
    return ChangedIndex(index=index.name, total=len(changed.held))


def _check_rows(rows: list[JsonRow], index: AttachedFile) -> None:
    """Raise InputError where a row has no text or no id, or the index counts its ids."""
    manifest = index.held.manifest
    if manifest.id is None:
        raise InputError(
            f"index: {index.name!r} counts its ids, so that a request sent again would add its rows twice; build it"
            " with a column of ids",
            field="index",
        )
    for place, row in enumerate(rows):
        missing = next((name for name in (manifest.id, *manifest.columns) if name not in row), None)
        if missing is not None and (missing == manifest.id or not any(name in row for name in manifest.columns)):
            raise InputError(f"rows[{place}] has no {missing!r}, which the index has", field=f"rows[{place}]")


@contextmanager
def _named_as_sent(index: AttachedFile) -> Iterator[None]:
    """Turn errors of a change into those of a request: they name the index and its rows, and no path."""
    from gramvec.jobs.common.bad_rows import RowError
    from gramvec.jobs.common.outcome import BulkError
    from gramvec.jobs.search.folder import WriterBusy

    try:
        yield
    except WriterBusy:
        raise index_busy_error(index.name) from None
    except RowError as error:
        place = f"rows[{error.number - 1}]"
        raise InputError(f"{place}: {error.why}", field=place, index=error.number - 1) from None
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise _unwritable_error(index.name, error.__cause__) from error
        sentence = str(error).replace(str(index.path), f"the index {index.name!r}")
        if error.index is None:
            raise InputError(sentence) from None
        place = f"rows[{error.index}]"
        sentence = sentence.replace(f"record {error.index}", place, 1)
        raise InputError(sentence, field=place, index=error.index) from None
    except (BulkError, OSError) as error:
        raise _unwritable_error(index.name, error.__cause__ if isinstance(error, BulkError) else error) from error


def _unwritable_error(name: str, error: BaseException | None) -> HttpError:
    why = getattr(error, "strerror", None) or type(error).__name__
    return unhealthy_error(f"the index {name!r} cannot be written ({why}); nothing has changed")
