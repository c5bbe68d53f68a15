"""Lookup of a model by name: the folders to search, in order."""

from __future__ import annotations

import os
from pathlib import Path

from gramvec.errors import BundleError

MANIFEST = "manifest.json"
MODELS_VARIABLE = "GRAMVEC_MODELS"


def find_bundle(name_or_path: str | os.PathLike[str]) -> Path:
    """Return the folder of a model: a bundle's folder itself, or a name in one of `model_folders`.

    Raises:
        BundleError: there is no such model. The message lists the names that exist, or how to get a model.
    """
    path = Path(name_or_path)
    if (path / MANIFEST).is_file():
        return path
    searched = model_folders()
    is_name = path.name == str(name_or_path) and path.name not in ("", ".", "..")
    for home in searched if is_name else []:
        if (home / path / MANIFEST).is_file():
            return home / path
    if path.is_dir():
        raise BundleError(f"{path / MANIFEST}: missing; {path} is not a bundle, export the model again")
    names = sorted({manifest.parent.name for home in searched for manifest in home.glob(f"*/{MANIFEST}")})
    wanted = f"no model {str(name_or_path)!r}: give a bundle's folder or a name"
    if names:
        raise BundleError(f"{wanted} (there are {', '.join(names)}); gramvec pull and gramvec import bring others")
    raise BundleError(
        f"{wanted} (this gramvec was installed without a model, and there is none in ./models or in a folder that "
        f"{MODELS_VARIABLE} names)"
    )


def model_folders() -> list[Path]:
    """Return the folders that are searched for models, in order.

    They are those in the variable GRAMVEC_MODELS (with ":" between several), ./models, the checkout's models/, and the
    installed package's own, which holds the default model.
    """
    named_folders = [Path(part) for part in os.environ.get(MODELS_VARIABLE, "").split(os.pathsep) if part]
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    in_checkout = [checkout / "models"] if (checkout / "pyproject.toml").is_file() else []
    return [*named_folders, Path("models"), *in_checkout, package / "models"]
