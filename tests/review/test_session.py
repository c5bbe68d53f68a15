from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gramvec.errors import InputError
from gramvec.jobs.matching.proposals import BATCH, propose
from gramvec.jobs.review.answers_file import AnswersFile
from gramvec.jobs.review.estimate import knows_far
from gramvec.jobs.review.pair_questions import MIN_OF_EACH, LearnedScores, PairQuestions
from gramvec.jobs.review.session import FinishWork, ReviewSession
from support.errors import refused
from support.review_job import NumberJob


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


def session_of(path: Path, job: NumberJob | None = None) -> ReviewSession[LearnedScores]:
    job = job or NumberJob()
    return ReviewSession(PairQuestions(job), AnswersFile(path, job.columns))


def answer_truly(session: ReviewSession[LearnedScores], answers: int) -> list[int]:
    asked = []
    for _ in range(answers):
        question = session.state()["question"]
        if question is None:
            break
        asked.append(question["id"])
        session.answer(question["id"], "yes" if session.subject.job.truth(question["id"]) else "no")
    return asked


def test_proposals_are_near_the_threshold_sure_and_spread():
    scores = np.linspace(0, 1, 1_001)
    chosen = propose(scores, 0.5, set(), lambda pair: (pair, pair), seed=1)
    assert len(set(chosen)) == BATCH
    assert sum(abs(scores[pair] - 0.5) < 0.01 for pair in chosen) >= 6
    assert sum(scores[pair] > 0.75 for pair in chosen) >= 2
    assert [*chosen.values()].count("near") == 6 and [*chosen.values()].count("sure") == 2
    assert all(abs(scores[pair] - 0.5) < 0.01 for pair, reason in chosen.items() if reason == "near")
    assert chosen == propose(scores, 0.5, set(), lambda pair: (pair, pair), seed=1)


def test_no_row_is_asked_twice_in_a_batch_and_no_pair_again():
    scores = np.full(40, 0.5)
    chosen = propose(scores, 0.5, {0, 1}, lambda pair: (pair // 10, pair), seed=1)
    assert len(chosen) == len({pair // 10 for pair in chosen}) == 4
    assert not {0, 1} & set(chosen)
    assert propose(scores[:2], 0.5, {0, 1}, lambda pair: (pair, pair), seed=1) == {}
    assert propose(scores[:0], 0.5, set(), lambda pair: (pair, pair), seed=1) == {}


def test_it_learns_after_five_of_each_kind_and_again_after_ten_more(path: Path):
    session = session_of(path)
    for _ in range(6):  # while it learns, answers are given, and none of them begins another round
        answer_truly(session, 10)
        session.wait_for_learning()
    state = session.state()
    assert state["yes"] + state["no"] == 60
    assert min(session.subject.job.learned) >= 2 * MIN_OF_EACH
    assert state["rounds"] == len(session.subject.job.learned) >= 2
    assert state["problem"] == ""
    session.close()


def test_a_kill_loses_nothing(path: Path):
    first = session_of(path)
    asked = answer_truly(first, 7)
    first._file.close()  # as a kill leaves it
    again = session_of(path)
    assert (again.state()["yes"] + again.state()["no"]) == 7
    assert again.state()["can_undo"] is False
    assert not set(answer_truly(again, 20)) & set(asked)
    again.close()


def test_undo_asks_the_same_pair_again(path: Path):
    session = session_of(path)
    (pair,) = answer_truly(session, 1)
    session.undo()
    assert session.state()["question"]["id"] == pair
    assert path.read_text() == "left,right,match\n"
    session.undo()
    session.close()


def test_unsure_is_no_label_and_not_asked_again(path: Path):
    session = session_of(path, NumberJob(1))
    session.answer(0, "unsure")
    assert session.state()["question"] is None
    assert path.read_text().endswith("a0,b0,\n")
    assert session.finish() == ["0 labels are written"]
    with pytest.raises(InputError, match="finished"):
        session.answer(0, "yes")
    session.close()


def test_a_review_is_not_finished_by_the_answers_of_another_program(path: Path):
    session = session_of(path)
    answer_truly(session, 2)
    path.write_text("left,right,match\n")
    with refused(InputError, "labels.csv", "another program"):
        session.finish()
    assert session.finished is None
    session.close()


def test_answers_for_other_pairs_are_refused(path: Path):
    session = session_of(path)
    asked = session.state()["question"]["id"]
    with pytest.raises(InputError, match="not asked now"):
        session.answer(asked + 1, "yes")
    session.close()


def test_learning_that_fails_is_told_and_the_review_goes_on(path: Path):
    class Failing(NumberJob):
        def learn(self, pairs, match):
            raise InputError("labels contradict")

    session = session_of(path, Failing())
    answer_truly(session, 40)
    session.wait_for_learning()
    assert session.state()["problem"] == "labels contradict"
    answer_truly(session, 1)
    session.close()


def test_answers_of_rows_that_are_gone_are_counted(path: Path):
    path.write_text("left,right,match\nnone,x,1\na3,b3,0\n")
    session = session_of(path)
    assert (session.state()["unknown"], session.state()["no"]) == (1, 1)
    session.close()
    path.write_text("left,right,match\na3,b3,2\n")
    with refused(InputError, "1, 0"):
        session_of(path)


def test_a_question_says_why_it_is_asked(path: Path):
    session = session_of(path)
    assert session.state()["question"]["reason"] in ("near", "sure", "sample")
    session.close()


def test_what_finishing_does_is_told_while_it_works():
    work = FinishWork()
    assert work.show() == {"task": "", "share": None, "seconds": 0}
    work.start("comparing pairs", 4, "pairs")
    work.advance(1)
    assert work.show() == {"task": "comparing pairs", "share": 0.25, "seconds": 0}
    work.start("reading")
    assert work.show()["share"] is None


def test_recall_is_not_known_before_far_candidates_were_asked_about():
    scores = np.concatenate([np.full(100, 0.01), np.full(50, 0.9)])
    near = np.arange(100, 120)
    assert not knows_far(scores, near, 0.5)
    assert not knows_far(scores, np.concatenate([near, np.arange(9)]), 0.5)
    assert knows_far(scores, np.concatenate([near, np.arange(10)]), 0.5)
    assert knows_far(scores[98:], np.array([0, 1]), 0.5)  # there are no others
    assert knows_far(scores[100:], np.array([0]), 0.5)
