"""A bundle from the hub, of a stranger perhaps: what its manifest lists is taken, and if the sizes are those there."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from gramvec.bundle.bundle import Manifest, staged_folder
from gramvec.bundle.copy import check_target
from gramvec.bundle.manifest import MOST_BYTES as MOST_MANIFEST_BYTES
from gramvec.bundle.manifest import read_manifest
from gramvec.bundle.resolve import MANIFEST
from gramvec.embed.loading import load
from gramvec.errors import BundleError, InputError
from gramvec.hub.card import MOST_METADATA_BYTES, without_metadata
from gramvec.hub.errors import library, refusals
from gramvec.hub.push import CARD

# Left free beside what is downloaded.
SPARE_BYTES = 64 * 2**20


class Pulled(NamedTuple):
    """What came of it: the model's name, the bundle's digest, the commit that it was, and where it lies now."""

    name: str
    digest: str
    commit: str
    folder: Path


def pull(given: str, folder: Path | None = None, *, digest: str | None = None, overwrite: bool = False) -> Pulled:
    """Download a bundle, verify it as a whole with its golden texts, and only then put it into its place.

    Args:
        given: ORG/NAME, or ORG/NAME@REVISION for a branch, a tag or a commit.
        folder: where to; None for models/NAME.
        digest: the first digits, at least 12, of the bundle that is wanted; another is refused before it is downloaded.
        overwrite: replace a model that is there.

    Raises:
        InputError: huggingface_hub is not installed, there is no such model, or the folder is not free.
        BundleError: it is another bundle, or one that cannot be used.
        ServiceError: the hub cannot be had, or refuses.
    """
    if digest is not None and (len(digest) < 12 or set(digest.lower()) - set("0123456789abcdef")):
        raise InputError("a digest is given by its first 12 to 64 hexadecimal digits")
    hub = library()
    repository, _, revision = given.partition("@")
    folder = folder or Path("models") / repository.rpartition("/")[2]
    check_target(folder, overwrite=overwrite)
    with refusals(repository):
        api = hub.HfApi(library_name="gramvec")
        commit = api.model_info(repository, revision=revision or None).sha
    with staged_folder(folder) as stage, tempfile.TemporaryDirectory(prefix=".pull.", dir=folder.parent) as scratch:
        fetching = _Fetching(hub, api, repository, commit, Path(scratch))
        path = fetching.file(MANIFEST, MOST_MANIFEST_BYTES)
        manifest, found = read_manifest(Path(f"{repository}@{commit[:12]}") / MANIFEST, path.read_bytes())
        if digest is not None and not found.startswith(digest.lower()):
            raise BundleError(f"{repository} holds the bundle {found[:12]}, not {digest[:64]}; name its revision")
        _check_room(manifest, folder)
        path.rename(stage / MANIFEST)
        for name, record in manifest.files.items():
            more = MOST_METADATA_BYTES if name == CARD else 0
            path = fetching.file(name, record.bytes + more, least=record.bytes)
            if name == CARD:
                path.write_bytes(without_metadata(path.read_bytes(), record.bytes))
            path.rename(stage / name)
        with closing(load(stage, device="cpu")) as embedder:
            name = embedder.name
    return Pulled(name, found, commit, folder)


def _check_room(manifest: Manifest, folder: Path) -> None:
    wanted = sum(record.bytes for record in manifest.files.values()) + SPARE_BYTES
    free = shutil.disk_usage(folder.parent).free
    if wanted > free:
        raise InputError(f"the model wants {wanted / 1e6:.0f} MB, and {folder.parent} has {free / 1e6:.0f} MB free")


class _Fetching:
    """Files of one commit, none larger than was said before it is fetched."""

    def __init__(self, hub: Any, api: Any, repository: str, commit: str, scratch: Path) -> None:
        self._hub = hub
        self._api = api
        self._repository = repository
        self._commit = commit
        self._scratch = scratch

    def file(self, name: str, most: int, least: int = 0) -> Path:
        with refusals(self._repository):
            url = self._hub.hf_hub_url(self._repository, name, revision=self._commit, endpoint=self._api.endpoint)
            size = self._api.get_hf_file_metadata(url=url).size
        if size is None or not least <= size <= most:
            raise BundleError(f"{self._repository}: {name} has {size} bytes, and may have {least} to {most}")
        with refusals(self._repository):
            return Path(
                self._hub.hf_hub_download(
                    self._repository, name, revision=self._commit, local_dir=self._scratch, endpoint=self._api.endpoint
                )
            )
