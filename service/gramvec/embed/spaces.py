"""The columns of a vector: first what a text means, then which n-grams stand in it, where the model says so too."""

from __future__ import annotations

from typing import Literal, get_args

from gramvec.errors import InputError

Space = Literal["meaning", "identity", "both"]
SPACES: tuple[Space, ...] = get_args(Space)


def columns_of(space: Space, computed: Space, meaning: int, identity: int) -> slice:
    """Which columns of the vectors that an embedder of the space `computed` makes are those of `space`.

    meaning, identity: how many columns there are of either. Raises InputError for what it does not make.
    """
    check_space(space)
    if space == computed:
        return slice(None)
    if computed != "both":
        said = f"the model was opened for {computed} alone; leave out space, or open it for both"
        raise InputError(said, field="space")
    return slice(meaning) if space == "meaning" else slice(meaning, None)


def check_space(space: object) -> None:
    """Raise InputError for what is no space."""
    if space not in SPACES:
        raise InputError(f"space must be {', '.join(SPACES[:-1])} or {SPACES[-1]}, not {space!r}", field="space")
