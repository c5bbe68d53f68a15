"""Classes that a config names by their kind; each registers itself in the file that defines it."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

Section = TypeVar("Section", bound=BaseModel)
Registered = TypeVar("Registered", bound=type)


@functools.cache
def import_modules(package: str) -> None:
    """Import every module of a package, so that what they define is registered."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


class Registry(Generic[Section]):
    """Registered classes, each by the kind of its settings.

    The modules of the package are imported when a class is first asked for: a new file is found by itself, and torch is
    not imported before it is needed.
    """

    def __init__(self, what: str, package: str) -> None:
        self._what, self._package = what, package
        self._classes: dict[str, tuple[type[Section], type]] = {}

    def register(self, *settings: type[Section]) -> Callable[[Registered], Registered]:
        """Return a decorator that registers a class for these settings, whose `kind` has a default."""

        def add(registered: Registered) -> Registered:
            for section in settings:
                kind = section.model_fields["kind"].default
                if kind in self._classes:
                    raise ValueError(f"there are two classes for the {self._what} {kind!r}; rename one")
                self._classes[kind] = section, registered
            return registered

        return add

    def find_class(self, settings: Section) -> Any:
        """Return the class that was registered for these settings."""
        return self._find(settings.kind)[1]  # type: ignore[attr-defined]

    def parse(self, values: Any) -> Any:
        """Return values with a `kind` as the settings of that kind; settings and None are returned as they are.

        Raises:
            ValueError: There is no such kind, or a key or value is not valid.
        """
        if values is None or isinstance(values, BaseModel):
            return values
        kind = values.get("kind") if isinstance(values, dict) else None
        try:
            return self._find(kind)[0].model_validate(values)
        except ValidationError as error:
            raise ValueError(describe_first_error(error)) from None

    def _find(self, kind: Any) -> tuple[type[Section], type]:
        import_modules(self._package)
        if kind not in self._classes:
            raise ValueError(f"there is no {self._what} of kind {kind!r}; there are {', '.join(sorted(self._classes))}")
        return self._classes[kind]


def describe_first_error(error: ValidationError, whole: str = "the section") -> str:
    """Return a sentence on the first error: the key, or `whole`, and what is wrong with it."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"]) or whole
    if first["type"] == "extra_forbidden":
        return f"the key {key} is not known here; remove it or check its spelling"
    if first["type"] == "missing":
        return f"the key {key} is missing"
    message = first["msg"].removeprefix("Value error, ")
    got = f", got {first['input']!r}" if isinstance(first["input"], (str, int, float, bool)) else ""
    return f"{key}: {message[0].lower()}{message[1:]}{got}"
