"""Links, folders and pipes that somebody planted where something is written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from conftest import MODELS
from gramvec.bundle.bundle import copy_bundle
from gramvec.errors import InputError
from gramvec_training.shared import write_atomically
from support.errors import refused


def test_training_does_not_write_through_a_planted_link(tmp_path: Path) -> None:
    victim, output = tmp_path / "victim", tmp_path / "out"
    victim.write_bytes(b"precious")
    (tmp_path / f".out.{os.getpid()}.partial").symlink_to(victim)
    write_atomically(output, lambda file: file.write(b"good"))
    assert (output.read_bytes(), victim.read_bytes()) == (b"good", b"precious")
    assert not output.is_symlink()
    with pytest.raises(ValueError, match="half"):
        write_atomically(output, lambda file: [file.write(b"half"), int("half")])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out", "victim"]


@pytest.mark.parametrize("target", ["model", "empty", "nothing", "file", "pipe"])
def test_a_bundle_takes_the_place_of_no_link_or_pipe(target: str, tmp_path: Path) -> None:
    shutil.copytree(MODELS / "sif", tmp_path / "model")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"precious")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / target)
    before = sorted(tmp_path.rglob("*"))
    with refused(InputError, "link:", "link"):
        copy_bundle(MODELS / "paragram-phrase", tmp_path / "link", overwrite=True)
    if target in ("file", "pipe"):
        with refused(InputError, target, "file"):
            copy_bundle(MODELS / "paragram-phrase", tmp_path / target, overwrite=True)
    assert sorted(tmp_path.rglob("*")) == before
