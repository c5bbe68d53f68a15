"""A bundle to the hub: its files in one commit of a repository."""

from __future__ import annotations

import os
from typing import NamedTuple

from gramvec.bundle.bundle import open_bundle
from gramvec.bundle.resolve import MANIFEST
from gramvec.hub.card import with_metadata
from gramvec.hub.errors import library, refusals

CARD = "README.md"


class Pushed(NamedTuple):
    """What came of it: the bundle's digest, and the commit that holds it."""

    digest: str
    commit: str


def push(
    name_or_path: str | os.PathLike[str], repository: str, *, revision: str | None = None, private: bool = False
) -> Pushed:
    """Upload a bundle to a repository ORG/NAME, which is made where there is none.

    The card gets the hub's metadata before it, which `pull` takes away; every other file is as it is here.

    Args:
        name_or_path: of the bundle, which is verified first.
        repository: ORG/NAME.
        revision: the branch to commit to; None for the main one.
        private: make the repository, if it is made, for its owners alone.

    Raises:
        BundleError: the bundle is not whole.
        InputError: huggingface_hub is not installed, or the name is none.
        ServiceError: the hub cannot be had, or refuses.
    """
    hub = library()
    bundle = open_bundle(name_or_path)
    adds = []
    for name in (*bundle.manifest.files, MANIFEST):
        path = bundle.path / name
        content = with_metadata(path.read_bytes(), bundle.manifest) if name == CARD else str(path)
        adds.append(hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=content))
    with refusals(repository):
        api = hub.HfApi(library_name="gramvec")
        api.create_repo(repository, private=private, exist_ok=True)
        made = api.create_commit(
            repository, adds, commit_message=f"{bundle.manifest.name} {bundle.digest[:12]}", revision=revision
        )
    return Pushed(bundle.digest, made.oid)
