"""`gramvec review pairs`: questions over HTTP and in a browser, no answer lost by a kill, and what finish writes."""

from __future__ import annotations

import csv
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from selenium.webdriver.common.by import By
from test_app import until

from gramvec.errors import InputError
from gramvec.jobs.common.file_job import OptionError
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.inputs import digest_texts, read_labels, why_changed
from gramvec.jobs.matching.job import MatchJob
from gramvec.jobs.matching.matcher import PairLabels
from gramvec.jobs.matching.on import ComparedColumn
from gramvec.jobs.review.job import PairReviewJob
from gramvec.jobs.review.pair_review import PairReview, PairTables
from gramvec.jobs.review.session import FinishWork
from support.browser import chromium
from support.errors import assert_names, refused

for _module in ("sklearn", "sparse_dot_topn"):
    pytest.importorskip(_module, reason=f"{_module} is not installed: pip install 'gramvec[labels]'")

KINDS = ["camera", "printer", "lens", "receiver", "phone", "tablet"]
SIZES = ["small", "smaller", "smallish"]
COLORS = ["black", "white", "red", "blue"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A left and a right table: row n of each is the same thing, called otherwise; three rows differ in a word."""
    for name, words in (("left", "{kind} {color} mk{code} {size}"), ("right", "{size} {color} {kind} model mk{code}")):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            rows = []
            for at in range(90):
                model = at // 3
                values = {
                    "kind": KINDS[model % 6],
                    "color": COLORS[model % 4],
                    "code": 100 + model,
                    "size": SIZES[at % 3],
                }
                rows.append((f"{name}{at}", words.format(**values)))
            csv.writer(file).writerows([("id", "name"), *rows])
    return tmp_path


class Review(subprocess.Popen[str]):
    """A running command, at whose address pairs are asked."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.messages: list[str] = []
        command = [sys.executable, "-m", "gramvec", "review", *arguments]
        super().__init__(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.stderr is not None
        for line in self.stderr:
            self.messages.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/\S+/", line):
                self.address = found[0]
                break
        self.rest = threading.Thread(target=lambda: self.messages.extend(self.stderr or []))
        self.rest.start()

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(self.address + "state").json()
        return found

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = httpx.post(self.address + path, json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def end(self) -> str:
        """Wait for the end and return what was printed."""
        assert self.stdout is not None
        printed = self.stdout.read()
        self.wait(30)
        self.rest.join(5)
        return printed


@contextmanager
def review(folder: Path, *arguments: str) -> Iterator[Review]:
    with Review(folder, *arguments) as running:
        try:
            yield running
        finally:
            running.kill()
            running.rest.join(5)


def answer_of(pair: dict[str, Any]) -> str:
    return "yes" if pair["left"][4:] == pair["right"][5:] else "no"


def rows_of(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text().splitlines()))


@pytest.mark.slow
def test_what_finish_writes_is_what_the_printed_command_writes(folder: Path) -> None:
    with review(folder, "pairs", "left.csv", "right.csv", "--on", "name", "-o", "found.csv") as running:
        state = running.state()
        for number in range(60):
            question = state["question"]
            answer = answer_of(question["pair"])
            state = running.post("answers", {"id": question["id"], "answer": answer})
            last = [question["pair"]["left"], question["pair"]["right"], str(int(answer == "yes"))]
            left, right, digest, match = rows_of(folder / "labels.csv")[1:][number]
            assert [left, right, match] == last and len(digest) == 16
            if min(state["yes"], state["no"]) >= 12:
                break
        until(lambda: running.state()["rounds"] >= 1)
        state = running.post("finish", {})
        printed = running.end()
    assert running.returncode == 0
    assert printed.splitlines() == state["finished"]
    command = printed.splitlines()[-1].partition("The command that repeats this: ")[2]
    learned = "--labels labels.csv --keep-labels --save-matcher matcher.json"
    assert command == f"gramvec match left.csv right.csv --on name -o found.csv {learned}"
    written = [(folder / name).read_bytes() for name in ("found.csv", "matcher.json")]
    subprocess.run([sys.executable, "-m", *command.split()], cwd=folder, check=True, capture_output=True)
    assert written == [(folder / name).read_bytes() for name in ("found.csv", "matcher.json")]
    found = {(left, right): score for left, right, score, *_ in rows_of(folder / "found.csv")[1:]}
    for left, other, _, match in rows_of(folder / "labels.csv")[1:]:
        assert ((left, other) in found) == (match == "1")
        assert match == "0" or float(found[left, other]) == 1
    right = [row for row in rows_of(folder / "found.csv")[1:] if row[0][4:] == row[1][5:]]
    assert len(right) >= 85


@pytest.mark.slow
def test_a_kill_loses_no_answer_and_a_second_person_is_told(folder: Path) -> None:
    with review(folder, "pairs", "left.csv", "right.csv", "--on", "name") as running:
        asked = running.state()["question"]["id"]
        running.post("answers", {"id": asked, "answer": "unsure"})
        second = subprocess.run(
            [sys.executable, "-m", "gramvec", "review", "pairs", "left.csv", "right.csv", "--on", "name"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert second.stderr == (
            "Error: labels.csv: another review has it open; close that one, or give --labels another file\n"
        )
        os.kill(running.pid, signal.SIGKILL)
    with review(folder, "pairs", "left.csv", "right.csv", "--on", "name") as running:
        state = running.state()
        assert (state["unsure"], state["question"]["id"] == asked) == (1, False)
        finished = running.post("finish", {})["finished"]
        assert "Matches are written without them, by the pair model" in finished[1]
        assert finished[-1].endswith("gramvec match left.csv right.csv --on name -o matches.csv")
        assert not (folder / "matcher.json").exists()


@pytest.mark.slow
def test_control_c_says_how_to_go_on(folder: Path) -> None:
    with review(folder, "pairs", "left.csv", "--on", "name") as running:
        running.state()  # the server is there, with its handlers of signals
        running.send_signal(signal.SIGINT)
        running.end()
        assert running.returncode == 130
        assert running.messages[-1] == "stopped; the answers are in labels.csv: the same command goes on with them\n"


@pytest.mark.slow
def test_a_person_reviews_one_table_by_keyboard(folder: Path, tmp_path: Path) -> None:
    rows = rows_of(folder / "left.csv") + rows_of(folder / "right.csv")[1:]
    with (folder / "all.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    with review(folder, "pairs", "all.csv", "--on", "name") as running, chromium(tmp_path / "profile") as browser:
        browser.get(running.address)
        body = browser.find_element(By.TAG_NAME, "body")
        yes = browser.find_element(By.CSS_SELECTOR, "button.yes")
        for count in range(1, 25):
            until(yes.is_enabled)
            ids = [one.text for one in browser.find_elements(By.CSS_SELECTOR, ".columns .ids")]
            numbers = [one.removeprefix("left").removeprefix("right") for one in ids]
            body.send_keys("y" if numbers[0] == numbers[1] else "n")
            until(lambda count=count: len(rows_of(folder / "labels.csv")) == count + 1)
        until(yes.is_enabled)
        body.send_keys("f")
        until(lambda: "The command that repeats this: gramvec match all.csv all.csv --on name" in body.text)
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    pairs = {(row[0], row[1]) for row in rows_of(folder / "matches.csv")[1:]}
    assert all(left != right and (right, left) in pairs for left, right in pairs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--labels", "left.csv"], "left.csv"),
        (["--labels", "labels.txt"], ".csv"),
        (["-o", "-"], "--output: must be a file"),
        (["-o", "labels.csv"], "labels.csv"),
        (["-o", "matches.pdf"], ".pdf"),
        (["--on", "brand:2"], "weights"),
        (["--on", "nothing"], "'nothing'"),
    ],
)
def test_bad_calls_are_one_sentence(arguments: list[str], sentence: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gramvec", "review", "pairs", "left.csv", "right.csv", "--on", "name", *arguments],
        cwd=folder, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert rows_of(folder / "left.csv")[0] == ["id", "name"]


class AddressWatch(JobWatch):
    """Watcher that waits for the address of the page."""

    def __init__(self) -> None:
        self.address: queue.Queue[str] = queue.Queue()

    def report(self, message: str) -> None:
        """Keep the address."""
        self.address.put(re.findall(r"http://\S+", message)[0])


def test_a_python_program_runs_a_review(folder: Path) -> None:
    job = PairReviewJob(
        left=folder / "left.csv", right=folder / "right.csv", on="name", labels=folder / "labels.csv",
        output=folder / "found.csv", save_matcher=folder / "matcher.json",
    )  # fmt: skip
    watch, results = AddressWatch(), []
    thread = threading.Thread(target=lambda: results.append(job.run(watch)))
    thread.start()
    address = watch.address.get(timeout=30)
    finished = httpx.post(f"{address}finish", json={}, timeout=30).json()["finished"]
    thread.join(30)
    assert results == [finished]
    assert finished[0].startswith("0 answers are in ")
    assert finished[-1] == f"{folder / 'found.csv'} has the matches."
    assert len(rows_of(folder / "found.csv")) > 80
    for options, field in (({"output": "-"}, "output"), ({"on": ["name", "name"]}, "on")):
        with pytest.raises(OptionError) as error:
            PairReviewJob(left="left.csv", right="right.csv", **options)
        assert error.value.field == field


def test_finishing_writes_safe_cells(folder: Path) -> None:
    for name in ("left", "right"):
        with (folder / f"{name}.csv").open("a") as file:
            file.write(f"{name}90,=cmd violet telescope mk977\n")
    job = PairReviewJob(
        left=folder / "left.csv", right=folder / "right.csv", on="name", output=folder / "found.csv", safe_cells=True
    )  # fmt: skip
    none = np.zeros(0, np.int64)
    job._write_matches(PairLabels(none, none, np.zeros(0, np.bool_)), write_command=None, work=FinishWork())
    with (folder / "found.csv").open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["left_id"] == "left90"]
    assert (row["left"], row["right_id"]) == ("'=cmd violet telescope mk977", "right90")


def job_of(
    texts: list[str],
    *,
    same: bool = False,
    numbered: bool = False,
    write: Callable[[Any], list[str]] = lambda labels: [],
) -> PairReview:
    ids = [f"r{at}" for at in range(len(texts))]
    fields = [Field(texts, texts, 1.0)]

    def digest_of(left: int, right: int) -> str:
        return f"abcd{left:06x}{right:06x}"

    tables = PairTables(fields, [("name", "name")], None, (ids, ids), same, digest_of, numbered)
    return PairReview("t", tables, write)


def test_pairs_are_found_by_their_ids() -> None:
    texts = [f"{KINDS[at // 3 % 6]} mk{at // 3} {SIZES[at % 3]}" for at in range(40)]
    two, one = job_of(texts), job_of(texts, same=True)
    for job in (two, one):
        pairs = len(job.first().scores)
        assert [job.find(job.names(pair)) for pair in range(pairs)] == list(range(pairs))
        assert job.find(("r0", "unknown")) is None
    names = one.names(0)
    assert one.find((names[1], names[0], names[2])) == one.find(names[:2]) == 0
    assert one.find((*names[:2], "0123456789abcdef")) == 0  # of other columns, so nothing is known of its texts
    assert one.find((*names[:2], names[2][:4] + "0" * 12)) is None
    numbered = job_of(texts, same=True, numbered=True)
    assert numbered.find(names) == 0 and numbered.find(names[:2]) is None
    assert all(left < right for left, right in map(one.rows, range(len(one.first().scores))))


def test_what_is_learned_does_not_depend_on_the_order_of_answers() -> None:
    texts = [f"{KINDS[at // 3 % 6]} mk{at // 3} {SIZES[at % 3]}" for at in range(60)]
    job = job_of(texts)
    pairs = np.arange(len(job.first().scores))
    match = np.array([one == other for one, other in map(job.rows, pairs.tolist())])
    order = np.random.default_rng(0).permutation(pairs)
    first, second = job.learn(pairs, match), job.learn(order, match[order])
    assert (first.scores == second.scores).all() and first.threshold == second.threshold
    shown = job.show(0, first.scores)
    assert shown.score == pytest.approx(first.scores[0])
    assert shown.note


def test_rows_with_nothing_in_common_are_one_sentence() -> None:
    with refused(InputError, "`on`"):
        job_of(["", "  "])


def test_answers_about_rows_that_were_changed_are_refused(folder: Path) -> None:
    left, right, labels = folder / "left.csv", folder / "right.csv", folder / "labels.csv"
    job = PairReviewJob(left=left, right=right, on="name", labels=labels, id="none")
    tables = job.read_tables((ComparedColumn("name", "name"),), NO_WATCH)
    rows = [f"{row + 2},{row + 2},{tables.digest_of(row, row)},{row % 2}\n" for row in range(12)]
    labels.write_text("left,right,texts_digest,match\n" + "".join(rows))
    ids = tables.left.ids, tables.right.ids
    assert len(read_labels([labels], *ids, digest_of=tables.digest_of).labels.match) == 12
    head, *lines = left.read_text().splitlines(keepends=True)
    left.write_text(head + lines[5] + "".join(lines))  # a row on top, so that all others have other numbers
    with refused(InputError, "labels.csv", "other texts"):
        job.run()
    changed = job.read_tables((ComparedColumn("name", "name"),), NO_WATCH)
    with refused(InputError, "labels.csv", "other texts"):
        read_labels([labels], changed.left.ids, ids[1], digest_of=changed.digest_of)
    found = read_labels([labels], changed.left.ids, ids[1], digest_of=changed.digest_of, on_error="skip")
    assert found.skipped == 12


def test_rows_that_are_named_by_number_are_known_by_their_texts_alone(folder: Path) -> None:
    now = digest_texts([("name", "name")], ["a"], ["b"], same=False)
    other = digest_texts([("name", "name"), ("kind", "kind")], ["a", "b"], ["c", "d"], same=False)
    assert why_changed(now, now, numbered=True) is None
    assert [why_changed(digest, now, numbered=False) for digest in (other, "")] == [None, None]
    assert_names(str(why_changed(other, now, numbered=True)), "other columns", "`id`")
    assert_names(str(why_changed("", now, numbered=True)), "texts_digest", "`id`")
    labels, review = folder / "labels.csv", folder / "review.csv"
    rows = [f"{row},{row + step},{1 - step}\n" for row in range(2, 9) for step in (0, 1)]
    labels.write_text("left,right,match\n" + "".join(rows))
    tables: dict[str, Any] = {"left": folder / "left.csv", "right": folder / "right.csv", "id": "none"}
    with refused(InputError, "labels.csv", "number", "texts_digest"):
        PairReviewJob(**tables, on="name", labels=labels).run()
    options: dict[str, Any] = {**tables, "labels": [labels]}
    with refused(InputError, "labels.csv", "line 2", "number", "texts_digest"):
        MatchJob(**options, on="name").run()
    MatchJob(**tables, on="name", review=review).run()
    asked = list(csv.DictReader(review.read_text().splitlines()))
    with labels.open("w", newline="") as file:
        writer = csv.DictWriter(file, asked[0])
        writer.writeheader()
        writer.writerows(row | {"match": at % 2} for at, row in enumerate(asked))
    assert MatchJob(**options, on="name").run().matcher is not None
    with refused(InputError, "labels.csv", "other columns"):
        MatchJob(**options, on=["name", "id"]).run()
    head, *lines = (folder / "right.csv").read_text().splitlines(keepends=True)
    (folder / "right.csv").write_text(head + "".join(sorted(lines)))
    with refused(InputError, "labels.csv", "other texts"):
        MatchJob(**options, on="name").run()


def test_a_digest_is_of_columns_and_texts() -> None:
    columns = [("name", "title")]
    one = digest_texts(columns, ["a"], ["b"], same=False)
    assert len(one) == 16 and one == digest_texts(columns, ["a"], ["b"], same=False)
    assert one != digest_texts(columns, ["b"], ["a"], same=False)
    assert digest_texts(columns, ["a"], ["b"], same=True) == digest_texts(columns, ["b"], ["a"], same=True)
    assert digest_texts([("name", "name")], ["a"], ["b"], same=False)[:4] != one[:4]
    both = [("name", "title"), ("city", "town")]
    assert digest_texts(both, ["a", "x"], ["b", "y"], same=False) == digest_texts(
        both[::-1], ["x", "a"], ["y", "b"], same=False
    )
    assert digest_texts(columns, ["a", "b"], ["c", ""], same=False) != digest_texts(columns, ["a"], ["b"], same=False)
