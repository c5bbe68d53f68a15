"""gramvec-train fit on what a pipe gives: read once, kept while the run needs it."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gramvec_training.cli.main import main
from gramvec_training.readers import lines as piped
from gramvec_training.runs.run_dir import INPUT, load_run
from gramvec_training.sections import TableFormat
from support.training import call, sentence

PAIRS = "".join(f"left number {n} here\tthe right one {n}\n" for n in range(30))
LABELED = "".join(f"card\tmy card is gone {n}\nrate\twhat is the rate of {n}\n" for n in range(8))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def piped_in(given: bytes | str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["fit-pairs", *arguments, "--epochs", "1"], input=given)


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_trains_the_model_that_a_file_trains(here: Path, packed: bool) -> None:
    (here / "mine.tsv").write_text(PAIRS)
    assert call("fit-pairs", "mine.tsv", "--out", "of-a-file", "--epochs", "1").exit_code == 0
    given = gzip.compress(PAIRS.encode()) if packed else PAIRS
    result = piped_in(given, "-")
    assert result.exit_code == 0, result.output
    assert (here / "runs/mine/weights.npz").read_bytes() == (here / "of-a-file/weights.npz").read_bytes()
    assert '"gramvec-train fit-pairs - --epochs 1"' in (here / "runs/mine/run.json").read_text()
    assert not (here / "runs/mine" / INPUT).exists()
    assert "not empty" in sentence(piped_in(given, "-"))
    assert piped_in(given, "-", "--overwrite").exit_code == 0


def test_a_named_pipe_is_read_once(here: Path) -> None:
    os.mkfifo("labels")
    writer = threading.Thread(target=lambda: (here / "labels").write_text(LABELED))
    writer.start()
    result = call("fit-labels", "labels", "--out", "run", "--epochs", "1")
    writer.join()
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (PAIRS.encode("utf-16-le"), "UTF-16 without a byte order mark"),
        (b"\0" * 10_000, "no usable row"),
        (b"", "run/input.tsv: no usable row"),
        (gzip.compress(PAIRS.encode())[:-20], "damaged"),
    ],
)
def test_what_a_pipe_should_not_give(here: Path, given: bytes, message: str) -> None:
    assert message in sentence(piped_in(given, "-", "--out", "run"))
    assert piped_in(PAIRS, "-", "--out", "run").exit_code == 0  # nothing is in the way


def test_a_pipe_is_bounded(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piped, "MAX_BYTES", 500)
    assert "write it to a file" in sentence(piped_in(PAIRS, "-", "--out", "run"))
    assert list((here / "run").iterdir()) == []


def test_a_pipe_has_the_form_of_its_option(here: Path) -> None:
    (here / "mine.tsv").write_text(PAIRS)
    assert call("fit-pairs", "mine.tsv", "--out", "of-a-file", "--epochs", "1").exit_code == 0
    given = ("text1;text2\n" + PAIRS.replace("\t", ";")).encode("utf-16-le")
    result = piped_in(given, "-", "--input-format", "csv", "--delimiter", ";", "--encoding", "utf-16-le")
    assert result.exit_code == 0, result.output
    assert (here / "runs/mine/weights.npz").read_bytes() == (here / "of-a-file/weights.npz").read_bytes()
    assert load_run(Path("runs/mine")).config.data[0].format == TableFormat(
        form="csv", delimiter=";", encoding="utf-16-le"
    )
    assert "format" not in load_run(Path("of-a-file")).record["config"]["data"][0]


def test_a_pipe_cannot_be_resumed() -> None:
    result = piped_in(PAIRS, "-", "--out", "run", "--resume")
    assert (result.exit_code, "fit --out RUN --resume goes on" in result.stderr) == (2, True)
