"""What every section of a config shares: it is frozen, and a key that it does not know is an error."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Penalty = Annotated[float, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class Strict(BaseModel):
    """A section of a config."""

    model_config = ConfigDict(frozen=True, extra="forbid")
