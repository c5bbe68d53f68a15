"""`FitJob` and `PredictJob`: a Python program does with files what `gramvec classify` does."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gramvec.errors import InputError
from gramvec.jobs.classify.job import FitJob, PredictJob, known_words
from gramvec.jobs.common.watch import JobWatch
from gramvec.text.vocabulary import Entry, Vocabulary
from support.bulk import MODEL
from support.errors import refused

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
                 device="cpu", threshold=0.5)  # fmt: skip
    result = fit.run()
    assert result.head.labels == ("card", "rate") and result.head.threshold == 0.5
    assert result.summary.splitlines()[0] == "4 held-out texts of 2 labels" and result.quality.texts == 4
    assert result.summary.splitlines()[-1].startswith(f"{folder / 'a.head'}: 2 labels of ")
    assert "<html" in (folder / "a.html").read_text()
    predict = PredictJob(head=folder / "a.head", source=folder / "texts.csv", output=folder / "labeled.csv",
                         model=MODEL, device="cpu", threshold={"rate": 1.0})  # fmt: skip
    assert predict.run().rows == 2
    with (folder / "labeled.csv").open(newline="") as file:
        rows = [(row["id"], row["label"], row["known"]) for row in csv.DictReader(file)]
    assert rows == [("1", "card", "True"), ("2", "rate", "False")]
    with refused(InputError, "'car'"):
        predict.model_copy(update={"threshold": (("car", 0.5),)}).run()
    assert capfd.readouterr() == ("", "")


def test_a_threshold_is_from_0_to_1(folder: Path) -> None:
    with pytest.raises(InputError, match="^threshold: ") as error:
        FitJob(labeled=folder / "labeled.tsv", output=folder / "b.head", threshold=2)
    assert error.value.field == "threshold"


class ListWatch(JobWatch):
    """Watcher that keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def report(self, message: str) -> None:
        """Keep the message."""
        self.messages.append(message)


def test_rows_without_a_label_and_words_of_another_language_are_told(folder: Path) -> None:
    path, watch = folder / "some.tsv", ListWatch()
    path.write_text(LABELED + "\tis it open\n")
    FitJob(labeled=path, output=folder / "c.head", model=MODEL, device="cpu", overwrite=True).run(watch)
    assert [message for message in watch.messages if "1 row has no label" in message]
    assert not [message for message in watch.messages if "language" in message]
    path.write_text("\tred car\n")
    with refused(InputError, "some.tsv", "label"):
        FitJob(labeled=path, output=folder / "c.head", model=MODEL, overwrite=True).run()
    texts = [
        "mi paquete no ha llegado todavía", "cuándo llegará mi pedido de ayer", "quiero el reembolso del cobro",
        "me han cobrado dos veces la factura",
    ]  # fmt: skip
    path.write_text("".join(f"{label}\t{text}\n" for label, text in zip("aabb", texts, strict=True)))
    FitJob(labeled=path, output=folder / "c.head", model=MODEL, device="cpu", overwrite=True).run(watch)
    assert [message for message in watch.messages if "another language" in message and "%" in message]


def test_the_share_of_known_words_by_hand() -> None:
    vocabulary = Vocabulary.build([Entry("word", f"wo{chr(97 + at)}", 1) for at in range(15)])
    texts = [" ".join(f"wo{chr(97 + at)}" for at in range(15)), "Aaa bbb ccc ddd eee woa 12 x"]
    assert known_words(vocabulary, texts) == 15 / 20
    assert known_words(vocabulary, ["aaa bbb"]) == 1.0  # of two words nothing is said
    assert known_words(object(), texts) == 1.0
