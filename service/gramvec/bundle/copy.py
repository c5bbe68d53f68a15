"""A bundle's files into another folder: those that its manifest lists, and no others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from gramvec.bundle.bundle import Bundle, open_bundle, staged_folder
from gramvec.bundle.resolve import MANIFEST
from gramvec.errors import BundleError, InputError


def check_target(folder: Path, *, overwrite: bool) -> None:
    """Raise InputError where a bundle cannot be put into this folder."""
    if folder.is_dir() and (folder / MANIFEST).is_file():
        if not overwrite:
            raise InputError(f"{folder} holds a model already; choose another folder or pass --overwrite")
    elif folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} holds other files, which a model would take the place of; choose another folder")
    elif folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose another folder")


def copy_bundle(name_or_path: str | os.PathLike[str], folder: Path, *, overwrite: bool = False) -> Bundle:
    """A verified copy of a bundle in `folder`, which is there as a whole or not at all; opened.

    Raises:
        BundleError: the bundle is not whole.
        InputError: the folder is not free.
        OSError: it cannot be written.
    """
    check_target(folder, overwrite=overwrite)
    source = open_bundle(name_or_path)
    with staged_folder(folder) as stage:
        for name in (*source.manifest.files, MANIFEST):
            shutil.copyfile(source.path / name, stage / name)
        if open_bundle(stage).digest != source.digest:
            raise BundleError(f"{source.path} was changed while it was copied; copy it again")
    return open_bundle(folder)
