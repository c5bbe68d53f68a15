"""Files that are none of the bundle's: elsewhere, without end, or not files at all."""

from __future__ import annotations

import os
from pathlib import Path

from hostile.bundles.craft import attack, manifest

SECRET = b"the secret of whoever opens this bundle, in a file beside it\n"


def listed(folder: Path, name: str, size: int) -> None:
    with manifest(folder) as values:
        values["files"][name] = {"bytes": size, "sha256": "0" * 64}


@attack("manifest.json", "../secret.txt")
def a_table_in_a_file_above(folder: Path) -> None:
    """Its rows would be served as vectors."""
    (folder.parent / "secret.txt").write_bytes(SECRET)
    with manifest(folder) as values:
        values["graph"]["stored"]["file"] = "../secret.txt"
        values["files"]["../secret.txt"] = values["files"]["model.onnx.data"]


@attack("manifest.json", "plain name")
def an_absolute_name(folder: Path) -> None:
    listed(folder, "/etc/hostname", 10)


@attack("manifest.json", "plain name")
def a_name_in_a_folder_inside(folder: Path) -> None:
    listed(folder, "inner/file", 10)


@attack("manifest.json", "its own digest")
def the_manifest_in_itself(folder: Path) -> None:
    listed(folder, "manifest.json", 10)


@attack("secret.bin", "SHA-256")
def a_link_to_what_its_maker_does_not_know(folder: Path) -> None:
    """Its size can be guessed."""
    (folder.parent / "secret.txt").write_bytes(SECRET)
    (folder / "secret.bin").symlink_to("../secret.txt")
    listed(folder, "secret.bin", len(SECRET))


@attack("pipe", "regular file")
def a_pipe(folder: Path) -> None:
    """To open it is to wait for whoever writes."""
    os.mkfifo(folder / "pipe")
    listed(folder, "pipe", 0)


@attack("zeros", "regular file")
def a_device_without_end(folder: Path) -> None:
    (folder / "zeros").symlink_to("/dev/zero")
    listed(folder, "zeros", 0)


@attack("terminal", "regular file")
def a_link_to_the_terminal(folder: Path) -> None:
    (folder / "terminal").symlink_to("/dev/ptmx")
    listed(folder, "terminal", 0)


@attack("endless", "cannot be read (Too many levels of symbolic links)")
def a_link_to_itself(folder: Path) -> None:
    (folder / "endless").symlink_to("endless")
    listed(folder, "endless", 10)


@attack("inner", "regular file")
def a_folder_for_a_file(folder: Path) -> None:
    (folder / "inner").mkdir()
    listed(folder, "inner", 4096)


@attack("maps", "bytes, the manifest has 100")
def a_file_that_is_made_when_it_is_read(folder: Path) -> None:
    (folder / "maps").symlink_to("/proc/self/maps")
    listed(folder, "maps", 100)


@attack("vocabulary.safetensors", "bytes, and may have 1073741824")
def tables_larger_than_memory(folder: Path) -> None:
    """A file of holes, which takes no room on the disk."""
    os.truncate(folder / "vocabulary.safetensors", 2**31)
    path = folder / "manifest.json"
    before = path.read_bytes()
    size = f'"bytes": {2**31}'.encode()
    at = before.index(b'"vocabulary.safetensors"')
    begin = before.index(b'"bytes": ', at)
    end = min(before.index(sign, begin) for sign in (b",", b"}"))
    path.write_bytes(before[:begin] + size + before[end:])


@attack("manifest.json", "missing")
def a_manifest_that_is_a_pipe(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")


@attack("manifest.json", "missing")
def a_manifest_that_is_a_device(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").symlink_to("/dev/zero")


@attack("manifest.json", "not JSON")
def a_manifest_that_is_a_link_to_a_secret(folder: Path) -> None:
    (folder.parent / "secret.txt").write_bytes(SECRET)
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").symlink_to("../secret.txt")
