"""What may stand in the setting `alias`: NAME=MODEL, as in text-embedding-3-small=gramvec-en."""

from __future__ import annotations

from collections.abc import Sequence

MAX_ALIAS_CHARACTERS = 200


def aliases_of(given: Sequence[str]) -> dict[str, str]:
    """Alias -> name of a model, in the order given.

    Raises:
        ValueError: a sentence: one is no NAME=MODEL, names itself, or a name is given twice.
    """
    found: dict[str, str] = {}
    for one in given:
        alias, _, model = one.partition("=")
        if not (alias and model) or not one.isprintable() or " " in one:
            raise ValueError(f"{one!r} is no alias; write NAME=MODEL, as in text-embedding-3-small=gramvec-en")
        if len(alias) > MAX_ALIAS_CHARACTERS:
            raise ValueError(f"an alias has {len(alias)} characters, the limit is {MAX_ALIAS_CHARACTERS}; shorten it")
        if alias == model:
            raise ValueError(f"{alias!r} is an alias of itself; a model has its own name anyway, so leave it out")
        if alias in found:
            raise ValueError(f"the alias {alias!r} is given twice; leave one out")
        found[alias] = model
    return found
