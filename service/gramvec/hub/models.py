"""Models to and from a hub: `push` commits a bundle's files, `pull` downloads, verifies and only then installs them."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from gramvec.bundle.bundle import check_target, open_bundle, stage_folder
from gramvec.bundle.manifest import MAX_MANIFEST_BYTES, TOKENIZER, Manifest, read_manifest
from gramvec.bundle.resolve import MANIFEST
from gramvec.bundle.verified_files import MAX_BYTES_IN_MEMORY, open_folder
from gramvec.embed.loading import load
from gramvec.errors import BundleError, InputError
from gramvec.hub.download import Hub, library

CARD = "README.md"
FENCE = b"---\n"
# Metadata of the hub before a card; the card itself has the length that the manifest lists.
MAX_METADATA_BYTES = 64 * 2**10
# Left free beside a download.
SPARE_BYTES = 64 * 2**20

_license = re.compile(r"[A-Za-z0-9.+-]{1,40}").fullmatch


class PushResult(NamedTuple):
    """Digest of a pushed bundle, and the commit that holds it."""

    digest: str
    commit: str


class PullResult(NamedTuple):
    """A pulled model: its name, the bundle's digest, the commit that it was, and its folder."""

    name: str
    digest: str
    commit: str
    folder: Path


def push(
    name_or_path: str | os.PathLike[str], repository: str, *, revision: str | None = None, private: bool = False
) -> PushResult:
    """Upload a bundle to a repository ORG/NAME, which is created if it does not exist.

    The card gets the hub's metadata before it, which `pull` removes; every other file is uploaded unchanged.

    Args:
        name_or_path: of the bundle, which is verified first.
        repository: ORG/NAME.
        revision: the branch to commit to; None for the main one.
        private: make a new repository private.

    Raises:
        BundleError: the bundle is damaged.
        InputError: huggingface_hub is not installed, or the name is not valid.
        ServiceError: the hub is unreachable, or refuses.
    """
    hub_library = library()
    bundle = open_bundle(name_or_path)
    adds = []
    for name in (*bundle.manifest.files, MANIFEST):
        path = bundle.path / name
        content = _with_metadata(path.read_bytes(), bundle.manifest) if name == CARD else str(path)
        adds.append(hub_library.CommitOperationAdd(path_in_repo=name, path_or_fileobj=content))
    size = sum(record.bytes for record in bundle.manifest.files.values())
    message = f"{bundle.manifest.name} {bundle.digest[:12]}"

    def upload() -> str:
        api = hub_library.HfApi(library_name="gramvec")
        api.create_repo(repository, private=private, exist_ok=True)
        return str(api.create_commit(repository, adds, commit_message=message, revision=revision).oid)

    with Hub(repository) as hub:
        hub.allow(size)
        return PushResult(bundle.digest, hub.call(upload))


def pull(given: str, folder: Path | None = None, *, digest: str | None = None, overwrite: bool = False) -> PullResult:
    """Download a bundle, verify all of it with its golden texts, and only then move it to its folder.

    A repository with a static model of model2vec or sentence-transformers instead is imported (see `import_static`).

    Args:
        given: ORG/NAME, or ORG/NAME@REVISION for a branch, a tag or a commit.
        folder: destination; None for models/NAME.
        digest: the first digits, at least 12, of the bundle that is wanted; another is refused before its download.
        overwrite: replace a model in the folder.

    Raises:
        InputError: huggingface_hub is not installed, there is no such model, or the folder is in use.
        BundleError: it is another bundle, or a damaged one.
        ServiceError: the hub is unreachable, too slow, or refuses.
    """
    if digest is not None and (len(digest) < 12 or set(digest.lower()) - set("0123456789abcdef")):
        raise InputError("a digest is given by its first 12 to 64 hexadecimal digits")
    repository, _, revision = given.partition("@")
    folder = folder or Path("models") / repository.rpartition("/")[2]
    check_target(folder, overwrite=overwrite)
    with Hub(repository) as hub:
        hub.find(revision)
        if MANIFEST in hub.sizes:
            return _pull_bundle(hub, folder, digest)
        if digest is not None:
            raise BundleError(f"{repository}: is not a gramvec bundle, so it has no digest; name a commit")
        return _pull_static(hub, folder, overwrite=overwrite)


def _pull_bundle(hub: Hub, folder: Path, digest: str | None) -> PullResult:
    """Download a bundle whose files have the sizes in its manifest, check it and put it into its folder."""
    hub.check_size(MANIFEST, 0, MAX_MANIFEST_BYTES)
    with TemporaryDirectory() as made:
        hub.download(MANIFEST, Path(made) / MANIFEST)
        data = (Path(made) / MANIFEST).read_bytes()
    manifest, bundle_digest = read_manifest(Path(f"{hub.repository}@{hub.commit[:12]}") / MANIFEST, data)
    if digest is not None and not bundle_digest.startswith(digest.lower()):
        raise BundleError(
            f"{hub.repository}: holds the bundle {bundle_digest[:12]}, not {digest[:64]}; name its revision"
        )
    for name, record in manifest.files.items():
        hub.check_size(name, record.bytes, record.bytes + (MAX_METADATA_BYTES if name == CARD else 0))
    size = sum(record.bytes for record in manifest.files.values())
    with stage_folder(folder) as stage:
        (stage / MANIFEST).write_bytes(data)
        _check_room(size, folder)
        hub.allow(size)
        for name, record in manifest.files.items():
            hub.download(name, stage / name)
            if name == CARD:
                (stage / name).write_bytes(_without_metadata((stage / name).read_bytes(), record.bytes))
        with closing(load(stage, device="cpu")) as embedder:
            name = embedder.name
    return PullResult(name, bundle_digest, hub.commit, folder)


def _pull_static(hub: Hub, folder: Path, *, overwrite: bool) -> PullResult:
    """Download a static model of another library in the sizes that the hub announces, and import it."""
    from gramvec.hub import static_models as static

    if not {static.CONFIG, static.MODULES} & hub.sizes.keys():
        raise InputError(f"{hub.repository}: has neither a gramvec model nor a static one: no manifest, no config")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as made:
        source = Path(made)
        for file in static.SETTINGS_FILES:
            if hub.sizes.get(file, static.MAX_SETTINGS_BYTES + 1) <= static.MAX_SETTINGS_BYTES:
                hub.download(file, source / file)
        with open_folder(source) as opened:
            _, inner = static.read_settings(opened)
        (source / inner).mkdir(exist_ok=True)
        parts = {inner + TOKENIZER: MAX_BYTES_IN_MEMORY[TOKENIZER], inner + static.TABLE: static.MAX_TABLE_BYTES}
        for file, max_bytes in parts.items():
            hub.check_size(file, 1, max_bytes)
        size = sum(hub.sizes[file] for file in parts)
        _check_room(2 * size, folder)
        hub.allow(size)
        for file in parts:
            hub.download(file, source / file)
        origin = f"{hub.repository}@{hub.commit}"
        _, bundle_digest = static.import_static(source, folder, overwrite=overwrite, origin=origin)
    return PullResult(folder.name, bundle_digest, hub.commit, folder)


def _check_room(size: int, folder: Path) -> None:
    wanted, free = size + SPARE_BYTES, shutil.disk_usage(folder.parent).free
    if wanted > free:
        raise InputError(f"the model needs {wanted / 1e6:.0f} MB, and {folder.parent} has {free / 1e6:.0f} MB free")


def _with_metadata(card: bytes, manifest: Manifest) -> bytes:
    """Return the card with the metadata by which the hub lists it; a card that has some stays unchanged."""
    if card.startswith(FENCE):
        return card
    license_name = str(manifest.provenance.get("license", ""))
    data = library().ModelCardData(
        license=license_name.lower() if _license(license_name) else None,
        library_name="gramvec",
        pipeline_tag="sentence-similarity",
        tags=["gramvec", "sentence-embeddings", *(["character-ngrams"] if manifest.ngrams else []), manifest.kind],
        model_name=manifest.name,
    )
    return b"".join([FENCE, data.to_yaml().encode(), b"\n", FENCE, b"\n", card])


def _without_metadata(content: bytes, size: int) -> bytes:
    """Return the last `size` bytes where metadata stand before them; else all, for the digest to judge."""
    if len(content) <= size or not content.startswith(FENCE):
        return content
    return content[len(content) - size :]
