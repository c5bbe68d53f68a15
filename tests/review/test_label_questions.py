"""Questions about labels: which texts are asked about, what the answers teach, and a review by keyboard."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from test_app import until
from test_review_command import review, rows_of

from gramvec.errors import InputError
from gramvec.jobs.classify.head import Head
from gramvec.jobs.classify.labeled import read_labeled
from gramvec.jobs.review.answers_file import AnswersFile
from gramvec.jobs.review.label_questions import BATCH, LabelQuestions
from gramvec.jobs.review.session import LEARN_EVERY, ReviewSession
from gramvec.jobs.tables.inputs import FileFormat
from support.browser import chromium
from support.bulk import MODEL, gramvec_command
from support.errors import refused

pytest.importorskip("scipy", reason="a head is learned with SciPy: pip install 'gramvec[classify]'")

WHAT = {"weather": ["rain", "sun", "snow", "wind"], "music": ["jazz", "song", "radio", "piano"]}
TEXTS = [f"{word} {number}" for words in WHAT.values() for word in words for number in range(10)]
TRUTH = {text: label for label, words in WHAT.items() for text in TEXTS if text.split()[0] in words}


class StandInHead:
    """A head of fixed scores."""

    model, digest, threshold = "m", "d", 0.5

    def __init__(self, scores: Any, labels: Sequence[str] = ("music", "weather"), *, several: bool = False) -> None:
        self.scores, self.labels, self.several = np.asarray(scores, np.float32), tuple(labels), several

    def predict(self, texts: Sequence[str], vectors: Any) -> Any:
        return self.scores


def vectors_of(texts: Sequence[str]) -> Any:
    """A column for each word, and a little of the number."""
    words = sorted({text.split()[0] for text in TEXTS})
    found = np.zeros((len(texts), len(words) + 1), np.float32)
    for row, text in enumerate(texts):
        found[row, words.index(text.split()[0])] = 1
        found[row, -1] = 0.01 * int(text.split()[1])
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def subject_of(right: bool | None = None, **options: Any) -> LabelQuestions:
    """Texts beside a head that is right, wrong, or unsure of all of them."""
    names = ("music", "weather")
    scores = np.full((len(TEXTS), 2), 0.45)
    if right is not None:
        for row, text in enumerate(TEXTS):
            scores[row, names.index(TRUTH[text])] = 0.9 if right else 0.05
    head: Any = StandInHead(scores)
    return LabelQuestions("t", TEXTS, vectors_of(TEXTS), head, lambda labels: [f"{len(labels)} labels"], **options)


def test_each_batch_is_of_texts_that_are_unlike_one_another() -> None:
    subject = subject_of()
    words = [TEXTS[number].split()[0] for number in subject.propose(subject.first(), set(), 1)]
    assert len(words) == BATCH
    assert {*words[:8]} == {word for words in WHAT.values() for word in words}


def test_texts_like_labeled_ones_come_last_and_none_twice() -> None:
    others = [("rain 99", "weather"), ("jazz 99", "music")], vectors_of(["rain 99", "jazz 99"])
    subject = subject_of(others=others)
    first = subject.propose(subject.first(), {TEXTS.index("sun 0")}, 1)
    assert {TEXTS[number].split()[0] for number in first[:5]} == {"snow", "wind", "song", "radio", "piano"}
    asked: set[int] = set()
    while batch := subject.propose(subject.first(), asked, 1):
        assert not asked & {*batch}
        asked |= {*batch}
    assert len(asked) == len(TEXTS)


def test_what_the_head_is_sure_of_is_not_asked_first() -> None:
    scores = np.full((len(TEXTS), 2), 0.45)
    scores[: len(TEXTS) - 3, 0] = 0.99
    head: Any = StandInHead(scores)
    subject = LabelQuestions("t", TEXTS, vectors_of(TEXTS), head, lambda labels: [])
    assert {*subject.propose(subject.first(), set(), 1)[:1]} <= {*range(len(TEXTS) - 3, len(TEXTS))}


@pytest.mark.parametrize("right", [True, False])
def test_a_learned_head_takes_over_where_it_is_right_as_often(right: bool, tmp_path: Path) -> None:
    subject = subject_of(right)
    session = ReviewSession(subject, AnswersFile(tmp_path / "labels.csv", subject.columns))
    for _ in range(4 * LEARN_EVERY):
        question = session.state()["question"]
        session.answer(question["id"], TRUTH[question["text"]])
        session.wait_for_learning()
    state = session.state()
    assert (state["answers"], state["rounds"]) == (40, 4)
    first, learned = state["right"]
    assert first == (1 if right else 0)
    assert state["is_first"] == (learned < first)
    if not right:
        choices = {one["label"]: one["score"] for one in session.state()["question"]["choices"]}
        assert choices.keys() == {"music", "weather"}
    assert session.finish() == ["40 labels"]
    session.close()
    found = read_labeled(tmp_path / "labels.csv", FileFormat("csv"), "text", "label")
    assert [(label,) for label in map(TRUTH.__getitem__, found.texts)] == found.labels


def test_answers_are_written_as_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("text,label\nsnow  3,weather\nsomething else,music\n")
    subject = subject_of()
    session = ReviewSession(subject, AnswersFile(path, subject.columns))
    assert (session.state()["answers"], session.state()["unknown"]) == (1, 1)
    asked = session.state()["question"]
    session.answer(asked["id"], "  a new\tlabel ".replace("\t", " "))
    assert path.read_text().endswith(f"{asked['text']},a new label\n")
    assert "a new label" in session.state()["labels"]
    session.undo()
    assert session.state()["question"] == asked
    session.answer(asked["id"], "")
    assert path.read_text().endswith(f"{asked['text']},\n")
    assert session.state()["unsure"] == 1
    with pytest.raises(InputError, match="line feeds"):
        session.answer(session.state()["question"]["id"], "a\nb")
    session.close()


def test_a_text_may_have_several_labels() -> None:
    head: Any = StandInHead(np.full((2, 3), 0.5), ["a", "b", "c"], several=True)
    subject = LabelQuestions("t", ["x", "y"], np.eye(2, dtype=np.float32), head, lambda labels: [])
    assert subject.write(" a |b| a") == "a|b"
    assert subject.summarize(subject.first(), {0: "a|d"})["labels"] == ["a", "b", "c", "d"]


def test_too_many_texts_are_one_sentence() -> None:
    head: Any = StandInHead(np.zeros((2, 2)))
    with refused(InputError, "no text"):
        LabelQuestions("t", [], np.zeros((0, 2), np.float32), head, lambda labels: [])
    head.labels = range(1 << 27)
    with refused(InputError, "1 texts"):
        LabelQuestions("t", ["x", "y"], np.eye(2, dtype=np.float32), head, lambda labels: [])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    learned = [("text", "label"), *((text, label) for text, label in TRUTH.items() if text[-1] in "01")]
    (tmp_path / "labels.csv").write_text("".join(f"{text},{label}\n" for text, label in learned))
    (tmp_path / "texts.txt").write_text("\n".join(text for text in TEXTS if text[-1] not in "01") + "\n\n")
    done = gramvec_command("classify", "fit", tmp_path / "labels.csv", "--model", MODEL, "-o", tmp_path / "first.head")
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.slow
def test_a_person_labels_by_keyboard(folder: Path, tmp_path: Path) -> None:
    with (
        review(folder, "labels", "texts.txt", "--head", "first.head") as running,
        chromium(tmp_path / "profile") as browser,
    ):
        browser.get(running.address)
        body = browser.find_element(By.TAG_NAME, "body")
        until(lambda: body.get_attribute("data-ready") == "true")
        unsure = browser.find_element(By.CSS_SELECTOR, "button[aria-keyshortcuts=s]")
        before = len(rows_of(folder / "labels.csv"))
        for count in range(1, 15):
            until(unsure.is_enabled)
            label = TRUTH[browser.find_element(By.CSS_SELECTOR, ".text").text]
            # At once: the page draws them anew when the head has learned.
            shown = browser.execute_script("return [...document.querySelectorAll('.choice')].map(one => one.innerText)")
            choices = [one.split() for one in shown]
            if count == 1:
                body.send_keys("t")
                typed = browser.switch_to.active_element
                typed.send_keys("nus and u", Keys.ENTER)
                label = "nus and u"
            else:
                (key,) = [one[-1] for one in choices if one[2] == label]
                body.send_keys(key)
            until(lambda count=count: len(rows_of(folder / "labels.csv")) == before + count)
            assert rows_of(folder / "labels.csv")[-1][1] == label
        until(unsure.is_enabled)
        body.send_keys("u")
        until(lambda: len(rows_of(folder / "labels.csv")) == before + 13)
        until(unsure.is_enabled)
        body.send_keys("s")
        until(lambda: rows_of(folder / "labels.csv")[-1][1] == "")
        until(lambda: "1 not sure" in body.text)
        assert all(one.accessible_name for one in browser.find_elements(By.CSS_SELECTOR, "button, input"))
        for width in (360, 1100):
            browser.set_window_size(width, 800)
            wide, shown = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            assert wide <= shown
        until(unsure.is_enabled)
        body.send_keys("f")
        until(lambda: "The command that repeats this: gramvec classify fit labels.csv" in body.text)
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
        printed = running.end()
    written = (folder / "reviewed.head").read_bytes()
    command = printed.splitlines()[-1].partition("The command that repeats this: ")[2]
    assert command.startswith("gramvec classify fit labels.csv -o reviewed.head --model ")
    subprocess.run([sys.executable, "-m", *command.split()], cwd=folder, check=True, capture_output=True)
    assert (folder / "reviewed.head").read_bytes() == written
    assert {*Head.load(folder / "reviewed.head").labels} >= {"music", "weather", "nus and u"}


@pytest.mark.slow
def test_a_review_with_one_label_writes_no_head(folder: Path) -> None:
    with review(folder, "labels", "texts.txt", "--head", "first.head", "--labels", "new.csv") as running:
        running.post("answers", {"id": running.state()["question"]["id"], "answer": "music"})
        finished = running.post("finish", {})["finished"]
        assert finished[0] == "1 label is in new.csv."
        assert finished[1].startswith("No head is written")
    assert not (folder / "reviewed.head").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["labels.csv"], "extra argument"),
        (["--on", "text"], "--on"),
        (["--labels", "texts.txt"], "texts.txt"),
        (["-o", "labels.csv"], "labels.csv: "),
        (["--column", "subject", "--input-format", "csv"], "'subject'"),
    ],
)
def test_bad_calls_are_one_sentence(arguments: list[str], sentence: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gramvec", "review", "labels", "texts.txt", *arguments, "--head", "first.head"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
