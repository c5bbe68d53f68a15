"""Training on texts with labels: what is read, drawn, held apart, held out and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_training_own_pairs import _full_disk, bundle

import gramvec
from gramvec.errors import InputError
from gramvec_training.cli.support import report_held_out
from gramvec_training.config import parse_config
from gramvec_training.data.sampling import LabelGroups, LabelTexts, Mixture, split_labels
from gramvec_training.evaluation.classification import (
    measure_label_accuracies,
    measure_label_cosines,
    score_labels,
    show_label_report,
)
from gramvec_training.objectives.pairs import choose_negatives
from gramvec_training.readers.labels import Labeled, read_label_texts
from gramvec_training.readers.pairs import read_pairs
from gramvec_training.runs.run_dir import load_run
from support.training import call, refused_before_torch, sentence

pytestmark = pytest.mark.slow

INTENTS = {
    "card": ["my card is lost", "i lost the card", "the card was stolen", "where is my new card", "block the card"],
    "rate": ["what is the exchange rate", "how much is a euro", "the rate of the dollar", "is the rate good", "rates"],
    "close": ["close my account", "i want to leave", "delete the account", "end the contract", "please cancel it all"],
}
ROWS = [Labeled(label, (text,)) for label, texts in INTENTS.items() for text in texts]


@pytest.fixture(scope="module")
def intents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    whose = ("", "hello, ", "please: ", "today, ")
    lines = [f"{row.label}\t{who}{row.texts[0]}" for who in whose for row in ROWS]
    path = tmp_path_factory.mktemp("labels") / "my.tsv"
    path.write_text("\n".join([*lines, "lone\tsomething else", "card\tis the rate good"]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.tsv", "x\tcars\ny\tbuy\nx\tvans\n", []),
        ("a.tsv", "intent\tutterance\nx\tcars\ny\tbuy\nx\tvans\n", ["line 1 is a header; labels are 'intent'"]),
        ("a.tsv", "x\tcars\t0.5\ny\tbuy\t1\nx\tvans\t1\n", ["column 3 holds numbers and is not used: 3 rows"]),
        ("a.csv", "text,label\ncars,x\nbuy,y\nvans,x\n", ["line 1 is a header; labels are 'label'"]),
        (
            "a.jsonl",
            '{"id": 7, "text": "cars", "label": "x"}\n{"text": "buy", "label": "y", "more": [1]}\n'
            '{"label": "x", "text": "vans"}\n',
            ["the first object names the columns; labels are 'label' and texts 'text'"],
        ),
    ],
)
def test_texts_with_labels_are_read(tmp_path: Path, name: str, text: str, said: list[str]) -> None:
    (tmp_path / name).write_text(text)
    found, bad = read_label_texts(tmp_path / name)
    assert found == [Labeled("x", ("cars",)), Labeled("y", ("buy",)), Labeled("x", ("vans",))]
    assert len(bad.sentences()) == len(said)
    assert all(one in note for one, note in zip(said, bad.sentences(), strict=True))


def test_bad_objects_are_counted_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(
        b'{"label": 1, "text": "cars"}\n[1]\n{"label": 1}\nno\n\xff\n{"label": 2, "text": ["a"]}\n'
        b'{"label": 1, "text": "vans"}\n{"label": true, "text": "buy"}\n'
    )
    found, bad = read_label_texts(tmp_path / "a.jsonl")
    assert [one.label for one in found] == ["1", "1", "true"]
    assert bad.lines == {
        'not a JSON object such as {"text": "..."}': [2],
        "not JSON": [4],
        "an empty column": [3, 6],
        "not UTF-8": [5],
    }
    with pytest.raises(InputError, match="line 2: not a JSON object"):
        read_label_texts(tmp_path / "a.jsonl", on_bad="refuse")
    (tmp_path / "b.jsonl").write_text('{"text": "cars"}\n')
    with pytest.raises(InputError, match="b.jsonl: one column, 'text'"):
        read_label_texts(tmp_path / "b.jsonl")


def test_pairs_are_read_from_json_lines_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text1": "cars", "text2": "vehicles", "n": 1}\n{"text1": "a", "text2": "b"}\n')
    assert read_pairs(tmp_path / "a.jsonl")[0] == [("cars", "vehicles"), ("a", "b")]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROWS, None),
        ([*ROWS, Labeled("lone", ("x",))], None),
        ([Labeled(label, (f"{who} {text}",)) for who in "abcd" for label, (text,) in ROWS], None),
        (ROWS[:9], "too few"),
    ],
)
def test_held_out_texts_are_of_every_label_and_never_trained_on(rows: list[Labeled], said: str | None) -> None:
    split = split_labels(rows, 0.4, 1)
    parts = [split.train, split.chosen_by, split.reported]
    texts = [{*part.texts} for part in parts]
    assert sum(map(len, texts)) == len(set.union(*texts)) == len(rows)
    if said:
        assert not texts[1] | texts[2]
        return
    assert len(texts[1] | texts[2]) == pytest.approx(0.4 * len(rows), abs=1)
    assert 0 <= len(texts[2]) - len(texts[1]) <= 1
    names = {label for part in parts[1:] for own in part.labels for label in own}
    assert names == {0, 1, 2}
    assert split == split_labels(rows, 0.4, 1)
    assert split != split_labels(rows, 0.4, 2)
    assert not len(split_labels(rows, 0, 1).reported)


@given(
    rows=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 60)), min_size=1, max_size=80),
    share=st.sampled_from([0.1, 0.2, 0.5]),
)
def test_whatever_is_held_out_a_label_keeps_two_texts(rows: list[tuple[str, int]], share: float) -> None:
    split = split_labels([Labeled(label, (f"Text {text}",)) for label, text in rows], share, 1)
    labels = {text: {label for label, own in rows if own == text} for _, text in rows}
    parts = (split.train, split.chosen_by, split.reported)
    found = {text: own for part in parts for text, own in zip(part.texts, part.labels, strict=True)}
    assert len(found) == sum(map(len, parts)) == len(labels)
    assert all({split.names[one] for one in found[f"Text {text}"]} == own for text, own in labels.items())
    held = len(split.chosen_by) + len(split.reported)
    assert held <= round(share * len(labels)) + 1
    first = [own[0] for own in found.values()]
    trained = [own[0] for own in split.train.labels]
    assert all(trained.count(one) >= min(first.count(one), 2) for one in set(first))


def test_an_epoch_has_every_text_once_beside_another_of_its_label() -> None:
    groups = LabelGroups("x", np.array([10, 11, 12, 20, 21, 30]), np.array([0, 3, 5, 6]))
    mixture = Mixture([groups], seed=1)
    assert mixture.pairs_per_epoch == 6
    partners = set()
    for epoch in range(60):
        pairs = mixture.epoch(epoch)
        assert sorted(pairs[:, 0].tolist()) == [10, 11, 12, 20, 21, 30]
        assert all(a // 10 == b // 10 and (a != b or a == 30) for a, b in pairs.tolist())
        partners |= {(a, b) for a, b in pairs.tolist()}
    assert partners == {
        (10, 11), (10, 12), (11, 10), (11, 12), (12, 10), (12, 11), (20, 21), (21, 20), (30, 30)
    }  # fmt: skip
    assert (mixture.epoch(3) == mixture.epoch(3)).all()
    assert LabelGroups("x", groups.members, groups.offsets, cap=4).draw(np.random.default_rng(1)).shape == (4, 2)


@pytest.mark.parametrize("sampling", ["max", "mix", "rand"])
def test_negatives_are_never_of_the_own_label(sampling: str) -> None:
    rng = np.random.default_rng(1)
    classes = torch.tensor([0, 0, 1, 2, -1, 0, 0, 1, 2, -1])
    vectors = torch.nn.functional.normalize(torch.tensor(rng.normal(size=(10, 4))), dim=1)
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        chosen = choose_negatives(vectors, torch.arange(10), sampling, generator=generator, classes=classes)  # type: ignore[arg-type]
        for place, negative in enumerate(chosen.tolist()):
            if classes[place] < 0:
                assert negative == -1
            else:
                assert classes[negative] not in (-1, classes[place])
    same = torch.zeros(10, dtype=torch.int64)
    assert choose_negatives(vectors, torch.arange(10), "max", classes=same).eq(-1).all()


def test_accuracies_by_hand() -> None:
    vectors = {
        "a1": (1, 0, 0), "a2": (0.6, 0.8, 0), "b1": (0, 1, 0), "b2": (0, 0, 1), "a?": (1, 0, 0), "b?": (0.6, 0.8, 0),
        "c?": (0, 0, 1), "none": (0, 0, 0),
    }  # fmt: skip

    def unit(texts: list[str]) -> np.ndarray:
        return np.array([vectors[text] for text in texts], np.float32).reshape(-1, 3)

    train = LabelTexts(["a1", "a2", "b1", "b2"], [(0,), (0,), (1,), (1, 2)])
    asked = LabelTexts(["a?", "b?", "c?", "none"], [(0,), (1,), (2,), (0,)])
    # nearest: a1 right, a2 wrong, b2, which is also a c, right; unknown wrong though argmax says a1.
    # means a (.894, .447, 0), b (0, .707, .707), c (0, 0, 1): a? a right, b? a wrong, c? c right.
    found = measure_label_accuracies(train, asked, 3, unit)  # type: ignore[arg-type]
    assert (found["nearest"], found["centroid"]) == (50, 50)
    assert found["logistic"] is not None
    assert score_labels(train, asked, 3, unit) == pytest.approx(50 + 0.01 * np.mean(  # type: ignore[arg-type]
        [0.894427 - 0, 0.565685 - 0.894427, 1 - 0.707107, 0]
    ), abs=1e-6)  # fmt: skip
    table = show_label_report({"texts": 4, "before": {**found, "logistic": None}, "after": {**found, "centroid": 75.0}})
    assert table.splitlines() == [
        "4 held-out texts                 before    after",
        "label of the nearest text, %       50.0     50.0",
        "nearest mean of a label, %         50.0     75.0",
    ]
    assert "before" not in show_label_report({"texts": 4, "before": None, "after": found})


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [((80, 70), (79, 72), False), ((80, 70), (80, 70), False), ((80, 70), (80, 69), True), (None, (1, 1), False)],
)
def test_less_well_is_said_where_both_together_fell(
    before: tuple[float, float] | None, after: tuple[float, float], said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def values(pair: tuple[float, float] | None) -> dict[str, float | None] | None:
        return pair and {"nearest": pair[0], "centroid": pair[1], "logistic": 9.0}

    labels: dict[str, Any] = {"texts": 9, "before": values(before), "after": values(after)}
    if before is not None:
        means = {"before": sum(before) / 2, "after": sum(after) / 2}
        labels["verdict"] = {"measure": "both", **means, "low": -9.0, "high": 9.0, "better": False}
    report_held_out({"labels": labels})
    assert ("less well" in capsys.readouterr().err) == said


def test_from_labels_to_a_bundle_in_one_command(intents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bundle(tmp_path / "small")[0]
    options = [intents, "--from", folder]
    done = call("fit-labels", *options, "--out", tmp_path / "run", "--export", tmp_path / "new", "--anyway")
    assert done.exit_code == 0, done.output
    run = load_run(tmp_path / "run")
    found = run.record["labels"]
    assert done.stdout.startswith(show_label_report(found) + "\n")
    assert done.stderr.splitlines()[:2] == [
        f"{intents}: 1 label has a single text, which serves only as a negative: lone",
        f"{intents}: 1 text has several labels; each counts as right, and it is no negative",
    ]
    assert found["texts"] == 6
    assert found["after"]["logistic"] is not None
    assert run.record["command"] == "gramvec-train fit-labels my.tsv --from small"
    assert str(tmp_path) not in (tmp_path / "run" / "run.json").read_text()
    scores = dict(map(tuple, run.record["selection"]["scores"]))
    assert scores[run.record["selection"]["kept"]] == max(scores.values())
    assert gramvec.load(tmp_path / "new", device="cpu").manifest.provenance["labels"] == found
    assert "| my | not stated | 4 |" in (tmp_path / "new" / "README.md").read_text()

    # Begun again from a checkpoint, the end is the same; with a label changed it is refused.
    begin = ["--out", tmp_path / "again", "--save-every", "0"]
    with monkeypatch.context() as full:
        full.setattr("gramvec_training.runs.train.finish_run", _full_disk)
        assert call("fit-labels", *options, *begin).exit_code == 1
    changed = intents.read_text()
    intents.write_text(changed.replace("close\tplease: end", "rate\tplease: end"))
    assert "other data" in call("fit", *begin, "--resume").stderr
    intents.write_text(changed)
    assert call("fit", *begin, "--resume").exit_code == 0
    again = load_run(tmp_path / "again")
    assert again.encoder.arrays()["table"].tobytes() == run.encoder.arrays()["table"].tobytes()
    assert again.record["labels"] == found


def test_labels_are_learned_from_nothing(intents: Path, tmp_path: Path) -> None:
    done = call("fit-labels", intents, "--out", tmp_path / "run", "--held-out", "0.3")
    assert done.exit_code == 0, done.output
    found = load_run(tmp_path / "run").record["labels"]
    assert found["before"] is None
    assert found["after"]["centroid"] >= 75


def test_without_holding_out_nothing_is_chosen(intents: Path, tmp_path: Path) -> None:
    done = call("fit-labels", intents, "--out", tmp_path / "run", "--held-out", "0", "--epochs", "1")
    assert done.exit_code == 0, done.output
    record = load_run(tmp_path / "run").record
    assert "selection" not in record
    assert "labels" not in record
    assert record["data"][0]["texts"] == record["pairs"] - 1 == 61  # one text has two labels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "my.tsv: no such file"),
        ("alone\n", "no usable row (1 row skipped: 1 1 column (line 1))"),
        ("a\tcars\na\tvans\n", "label 'a'"),
        ("a\tcars\nb\tvans\n", "no label has two different texts"),
        ("a\tcars\na\tCars \nb\tvans\n", "no label has two different texts"),
        ("cars go\ta\nvans go\ta\nbuy it\tb\n", "more labels than texts"),
        ("a\tcars\nb\n", "every row has the label 'a'"),
    ],
)
def test_what_cannot_be_learned_from_is_one_sentence_before_torch_is_loaded(
    tmp_path: Path, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "my.tsv").write_text(text)
    assert said in refused_before_torch(tmp_path, "fit-labels", "my.tsv")
    assert not (tmp_path / "runs").exists()


def test_texts_that_all_have_several_labels_are_refused(tmp_path: Path) -> None:
    (tmp_path / "my.tsv").write_text("a\tcars\nb\tcars\na\tvans\nb\tvans\n")
    assert "too few texts have a label of their own" in sentence(
        call("fit-labels", tmp_path / "my.tsv", "--out", tmp_path / "run")
    )


def test_a_labeled_file_stands_alone_in_a_config() -> None:
    start = {"model": {"name": "x", "kind": "charagram-phrase"}, "training": {"epochs": 1}}
    one = {"path": "a.tsv", "labeled": True}
    assert parse_config({**start, "data": [one]}, source="c").data[0].labeled
    with pytest.raises(InputError, match=r"a labeled \[\[data\]\] is the only one"):
        parse_config({**start, "data": [one, {"path": "b.tsv"}]}, source="c")
    with pytest.raises(InputError, match=r"data\.layout belongs to paraphrases"):
        parse_config({**start, "data": [{**one, "layout": "pairs"}]}, source="c")


def test_cosines_within_a_label_and_with_others_by_hand() -> None:
    vectors = {"a": [1, 0], "b": [0.6, 0.8], "c": [0, 1], "d": [0.8, 0.6], "nothing": [0, 0], "e": [1, 0]}
    texts = LabelTexts(list(vectors), [(0,), (0,), (1,), (1,), (0,), (2,)])
    within, without = measure_label_cosines(
        texts, 3, lambda asked: np.array([vectors[one] for one in asked], np.float32)
    )
    assert within == pytest.approx([0.6, 0.6, np.nan], nan_ok=True)
    of_first = [0, 0.8, 1, 0.8, 0.96, 0.6]  # a with c, d and e; b with them
    of_second = [0, 0.8, 0, 0.8, 0.96, 0.8]  # c with a, b and e; d with them
    assert without == pytest.approx([np.mean(of_first), np.mean(of_second), np.nan], nan_ok=True)


def test_labels_that_join_unlike_texts_are_told_before_training(tmp_path: Path, intents: Path) -> None:
    def told(path: Path) -> list[str]:
        run = call("fit-labels", path, "--from", "gramvec-en", "--epochs", "1", "--out", tmp_path / path.stem)
        assert run.exit_code == 0, run.output
        return [line for line in run.stderr.splitlines() if "hardly nearer" in line]

    assert told(intents) == []
    kinds = ["a recipe for plum cake", "the senate passed a bill", "my printer is out of ink", "goals in extra time"]
    kinds += ["stars and their spectra", "how to prune roses", "a violin for sale", "rain expected on monday"]
    mixed = tmp_path / "mixed.tsv"
    mixed.write_text("".join(f"{'odd' if n % 2 else 'even'}\t{kind}\n" for n, kind in enumerate(kinds)))
    (line,) = told(mixed)
    assert "2 of 2 labels have texts that are hardly nearer to each other than to others" in line
    assert "odd (" in line
    assert "gramvec classify fit" in line
