"""Records of options of jobs that read files, work and write files, run by commands and by Python programs alike."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gramvec.errors import InputError, quote

# Columns that a written row has of the rows that it is made of.
RowColumns = Literal["none", "compared", "all"]
# Numbers that C libraries take as 32 bits, and threads, each of which is started.
MAX_NUMBER, MAX_THREADS = 10**9, 1024
PositiveNumber = Annotated[int, Field(ge=1, le=MAX_NUMBER)]
ThreadCount = Annotated[int, Field(ge=1, le=MAX_THREADS)]
UnitNumber = Annotated[float, Field(ge=0, le=1)]


class OptionError(InputError):
    """Options of a job contradict each other, or lack another; `field` names the option."""


class FileJob(BaseModel):
    """Options of a job, checked when the record is made; a subclass has a method `run`.

    Raises:
        InputError: an option is unknown, missing, out of its range, or contradicts another; `field` is its name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, **options: Any) -> None:
        try:
            super().__init__(**options)
        except ValidationError as error:
            raise _explain(error, type(self)) from error


def _explain(error: ValidationError, job: type[FileJob]) -> InputError:
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return InputError(f"there is no option {quote(name)}; the options are {', '.join(job.model_fields)}")
    if first["type"] == "missing":
        return InputError(f"{name}: is missing; give it", field=name)
    message = first["msg"][:1].lower() + first["msg"][1:]
    return InputError(f"{name}: {message}, got {quote(first['input'])}", field=name)
