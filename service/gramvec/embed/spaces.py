"""Columns of a vector by space: the semantic ones of the model's table, then the lexical ones of its n-grams."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator

from gramvec.errors import InputError, check_space_name

SpaceName = Literal["semantic", "lexical", "both"]
Space = Annotated[SpaceName, BeforeValidator(check_space_name)]
SPACES: tuple[SpaceName, ...] = get_args(SpaceName)


def columns_of(space: SpaceName, computed: SpaceName, semantic: int) -> slice:
    """Return the columns of `space` in vectors that an embedder of the space `computed` makes.

    Args:
        space: the columns that are wanted.
        computed: the columns that the vectors have.
        semantic: number of semantic columns, which come first.

    Raises:
        InputError: the vectors lack these columns, or `space` is not a valid space.
    """
    check_space(space)
    if space == computed:
        return slice(None)
    if computed != "both":
        said = f"the model was loaded with space={computed!r} only; leave out space, or load it with space='both'"
        raise InputError(said, field="space")
    return slice(semantic) if space == "semantic" else slice(semantic, None)


def check_space(space: object) -> None:
    """Raise InputError if `space` is not a valid space."""
    try:
        check_space_name(space)
    except ValueError as error:
        raise InputError(str(error), field="space") from None
    if space not in SPACES:
        raise InputError(f"space must be {', '.join(SPACES[:-1])} or {SPACES[-1]}, not {space!r}", field="space")
