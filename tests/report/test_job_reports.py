"""`--report` of classify and pairs: what the page has is what the job did."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from support.bulk import MODEL, gramvec_command
from support.reports import report_of

pytest.importorskip("scipy", reason="classify and pairs need SciPy: pip install 'gramvec[classify,match]'")

INTENTS = {
    "weather": ["will it rain {}", "is {} sunny", "how cold is it {}", "weather for {}", "does it snow {}"],
    "music": ["play jazz {}", "turn the song up {}", "stop the music {}", "next song {}", "play my list {}"],
    "order": ["order pizza {}", "where is my parcel {}", "cancel the order {}", "send food {}", "buy milk {}"],
}
WHEN = ["today", "tomorrow", "at noon", "tonight", "now", "on friday"]


def run(*arguments: object) -> str:
    done = gramvec_command(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.fixture(scope="module")
def labeled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labeled") / "intents.tsv"
    rows = [f"{label}\t{text.format(when)}" for label, texts in INTENTS.items() for text in texts for when in WHEN]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_learned_labels_have_calibration_and_confusion(labeled: Path) -> None:
    head, page = labeled.with_name("intents.head"), labeled.with_name("fit.html")
    printed = run("classify", "fit", labeled, "--model", MODEL, "-o", head, "--report", page)
    report = report_of(page)
    held = sum(report["scores"]["counts"])
    assert f"{held:,} held-out texts of 3 labels" in printed
    assert dict(report["facts"])["rows"] == f"90 of {labeled}"
    assert sum(one["count"] for one in report["calibration"]["bins"]) == held
    accuracy = sum(one["count"] * one["right"] for one in report["calibration"]["bins"]) / held
    assert f"{100 * accuracy:6.1f}" in printed.splitlines()[1]
    table = report["tables"][0]
    assert {row[0] for row in table["rows"]} == set(INTENTS)
    assert sum(int(row[1]) for row in table["rows"]) == held
    wrong = report["texts"][0]["texts"]
    assert all(text["label"] != text["answer"] for text in wrong)
    assert len(wrong) == min(60, round(held * (1 - accuracy)))
    # A fifth is left out of 90 texts, near copies with it.
    curve = [(point["labels"], point["value"]) for point in report["learning"]]
    assert [labels for labels, _ in curve] == [18, 36, 72]
    assert 0.4 < curve[0][1] <= curve[-1][1] <= 1
    assert report["learning_measure"] == "right answers"

    texts, given = labeled.with_name("texts.txt"), labeled.with_name("given.html")
    texts.write_text("rain on sunday?\nplay some rock\nwhere is the parcel\n\n")
    out = labeled.with_name("given.csv")
    run("classify", "predict", head, texts, "-o", out, "--report", given)
    report = report_of(given)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(report["scores"]["counts"]) == len(rows)
    assert {row[0]: int(row[1]) for row in report["tables"][0]["rows"]} == {
        label: sum(row["label"] == label for row in rows) for label in {row["label"] for row in rows}
    }
    assert {text["text"] for text in report["texts"][0]["texts"]} == {row["text"] for row in rows}


def test_several_labels_have_a_report(tmp_path: Path) -> None:
    source, page = tmp_path / "several.tsv", tmp_path / "fit.html"
    names = list(INTENTS)
    rows = []
    for at, (label, texts) in enumerate(INTENTS.items()):
        rows += [f"{label}\t{text.format(when)}" for text in texts for when in WHEN[:4]]
        other = names[(at + 1) % 3]
        rows += [f"{label}|{other}\t{text.format('')} and {INTENTS[other][0].format(WHEN[1])}" for text in texts]
    source.write_text("\n".join(rows) + "\n")
    run("classify", "fit", source, "--model", MODEL, "-o", tmp_path / "h.head", "--report", page)
    report = report_of(page)
    held = sum(report["scores"]["counts"])
    assert sum(one["count"] for one in report["calibration"]["bins"]) == held
    assert sum(int(row[1]) for row in report["tables"][0]["rows"]) == held


def test_given_pairs_have_a_report(tmp_path: Path) -> None:
    source, page = tmp_path / "pairs.csv", tmp_path / "pairs.html"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("a", "b"), ("Acme Inc", "Acme Incorporated"), ("CIPLAR LA 40 TABLET", "CIPLAR LA 80 TABLET"), ("x", "")]
        )
    printed = run("pairs", source, "--left", "a", "--right", "b", "--report", page)
    report = report_of(page)
    assert sum(report["scores"]["counts"]) == len(printed.splitlines()) - 1 == 3
    assert report["title"] == "Pairs of a and b"
    surest = report["pairs"][2]["pairs"]
    assert [pair["left"] for pair in surest] == ["line 2"]
    assert surest[0]["columns"][0]["name"] == "a = b"
