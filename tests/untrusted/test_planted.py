"""Links and folders that somebody planted under the temporary names of writers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gramvec_training.shared import write_atomically


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
