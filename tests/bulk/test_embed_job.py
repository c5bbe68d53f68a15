"""`EmbedJob`: a Python program does with a file what `gramvec embed` does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.jobs.bulk.job import EmbedJob
from support.bulk import MODEL
from support.errors import refused


def test_a_record_embeds_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "titles.csv", tmp_path / "titles.npy"
    source.write_text("id,title\n1,cheap flights\n2\n3,bananas\n")
    job = EmbedJob(source=source, output=output, column="title", dimensions=3, on_error="skip", model=MODEL,
                   device="cpu", resume=True)  # fmt: skip
    done = job.run()
    assert (done.rows, done.bad.count, done.was_complete) == (3, 1, False)
    expected = gramvec.load(MODEL, device="cpu").embed(["cheap flights", "bananas"], dimensions=3)
    assert np.load(output)[[0, 2]].tobytes() == expected.tobytes()
    assert job.run().was_complete
    assert capfd.readouterr() == ("", "")
    with refused(InputError, ".docx"):
        EmbedJob(source=source, output="titles.docx")
