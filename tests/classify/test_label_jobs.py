"""`FitJob` and `PredictJob`: a Python program does with files what `gramvec classify` does."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from bulk_support import MODEL
from errors_support import refused
from gramvec.errors import InputError
from gramvec.jobs.classify.job import FitJob, PredictJob

pytest.importorskip("sklearn", reason="learning labels needs scikit-learn: pip install 'gramvec[classify]'")

LABELED = "card\tmy card is lost\ncard\twhere is my new card\nrate\twhat is the rate\nrate\thow much is a euro\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with labeled texts, a head and texts."""
    folder = tmp_path_factory.mktemp("labels")
    (folder / "labeled.tsv").write_text(LABELED)
    (folder / "texts.csv").write_text("id,text\n1,i lost the card\n2,the rate of the euro\n")
    return folder


def test_a_head_is_learned_and_labels_a_file(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fit = FitJob(labeled=folder / "labeled.tsv", output=folder / "a.head", report=folder / "a.html", model=MODEL,
                 device="cpu", thresholds=0.5)  # fmt: skip
    result = fit.run()
    assert result.head.labels == ("card", "rate") and result.head.threshold == 0.5
    assert result.summary.splitlines()[0] == "4 held-out texts of 2 labels" and result.quality.texts == 4
    assert result.summary.splitlines()[-1].startswith(f"{folder / 'a.head'}: 2 labels of ")
    assert "<html" in (folder / "a.html").read_text()
    predict = PredictJob(head=folder / "a.head", source=folder / "texts.csv", output=folder / "labeled.csv",
                         model=MODEL, device="cpu", thresholds={"rate": 1.0})  # fmt: skip
    assert predict.run().rows == 2
    with (folder / "labeled.csv").open(newline="") as file:
        rows = [(row["id"], row["label"], row["known"]) for row in csv.DictReader(file)]
    assert rows == [("1", "card", "True"), ("2", "rate", "False")]
    with refused(InputError, "'car'"):
        predict.model_copy(update={"thresholds": (("car", 0.5),)}).run()
    assert capfd.readouterr() == ("", "")


def test_a_threshold_is_from_0_to_1(folder: Path) -> None:
    with pytest.raises(InputError, match="^thresholds: ") as error:
        FitJob(labeled=folder / "labeled.tsv", output=folder / "b.head", thresholds=2)
    assert error.value.field == "thresholds"
