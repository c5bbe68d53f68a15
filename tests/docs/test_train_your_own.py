"""docs/train-your-own.md is run as a newcomer would, on a small file of pairs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
from test_docs import ran, shell

from conftest import MODELS, ROOT
from gramvec_training.config import Start
from gramvec_training.runs.run_dir import load_run
from support.http import served_process, until

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "train-your-own.md").read_text(encoding="utf-8")
COMMANDS = [
    command for block in re.findall(r"^```sh\n(.*?)\n^```$", PAGE, re.DOTALL | re.MULTILINE)
    for command in re.split(r"(?<!\\)\n", block)
]  # fmt: skip
BAD = b"only one column\nsame\tsame\ncaf\xe9\tcoffee shop\n\tempty\n"


@pytest.fixture
def newcomer(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "charagram-phrase").symlink_to(MODELS / "charagram-phrase")
    verbs = [("buys", "purchases"), ("repairs", "fixes"), ("begins", "starts"), ("sees", "notices")]
    things = [("a car", "an automobile"), ("a bike", "a bicycle"), ("the film", "the movie")]
    whose = ["a man", "the young woman", "my neighbor", "two children"]
    rows = [
        f"{who} {verb[0]} {thing[0]}\t{who} {verb[1]} {thing[1]}" for who in whose for verb in verbs for thing in things
    ]
    (tmp_path / "my.tsv").write_bytes("\n".join(rows).encode() + b"\n" + BAD)
    return tmp_path


def test_the_commands_of_the_page_do_what_it_says(newcomer: Path) -> None:
    fit, serve, curl, similarity, _, _, _, fresh, export = COMMANDS
    done = ran(f"{fit} --anyway", newcomer)  # of so few pairs nothing is sure
    assert done.stderr == (
        "my.tsv: 4 rows skipped: 1 an empty side (line 52), 1 identical sides (line 50), 1 not UTF-8 (line 51), "
        "1 one column (line 49)\n"
    )
    lines = done.stdout.splitlines()
    shown = PAGE.split("```\nmy.tsv: ")[1].split("\n```")[0].splitlines()
    labels = [re.split(r"\s{2,}", line)[0] for line in shown[1:6]]
    assert [re.split(r"\s{2,}", line)[0] for line in lines[:5]] == ["5 held-out pairs", *labels[1:]]
    assert lines[5].split(": ")[0] == shown[6].split(": ")[0]
    assert re.fullmatch(r"runs/mine: [\d,]+ rows \([\d,]+ new\), \d+ s, of which training \d+ s", lines[6])
    assert lines[7].startswith("models/mine: ")
    assert len(lines) == len(shown) - 1 == 8

    found = load_run(newcomer / "runs" / "mine").record["held_out"]
    assert [f"{found[when]['top1']:.1f}" for when in ("before", "after")] == lines[1].split()[-2:]
    manifest = json.loads((newcomer / "models" / "mine" / "manifest.json").read_bytes())
    assert manifest["provenance"]["held_out"] == found

    assert serve == "gramvec serve --model mine"
    answers = shell(similarity, newcomer).splitlines()
    with served_process("--model", str(newcomer / "models" / "mine")) as (_, port):
        until(lambda: httpx.get(f"http://127.0.0.1:{port}/ready").is_success)
        served = json.loads(shell(curl.replace(":8000", f":{port}"), newcomer))
    by_text = {line.split("\t")[1]: float(line.split("\t")[0]) for line in answers}
    assert [by_text["track a parcel"], by_text["cancel my plan"]] == pytest.approx(served, abs=1e-4)

    assert "before" not in shell(fresh, newcomer)
    assert "models/fresh" in shell(export, newcomer)


def test_the_commands_for_labels_do_what_the_page_says(newcomer: Path) -> None:
    fit, head, predict = COMMANDS[4:7]
    rows = [line.split("\t")[0] for line in (newcomer / "my.tsv").read_bytes().decode("latin-1").splitlines()[:48]]
    labels = ["buying", "repairing", "beginning", "seeing"]
    lines = [f"{labels[place // 3 % 4]}\t{text}" for place, text in enumerate(rows)]
    (newcomer / "intents.tsv").write_text("\n".join(lines))
    (newcomer / "messages.txt").write_text("my cousin buys a car\n")

    printed = shell(fit, newcomer).splitlines()
    shown = PAGE.split("held-out texts  ")[1].split("\n```")[0].splitlines()
    assert printed[0].split() == ["5", "held-out", "texts", "before", "after"]
    assert [re.split(r"\s{2,}", line)[0] for line in printed[1:4]] == [
        re.split(r"\s{2,}", line)[0] for line in shown[1:4]
    ]
    assert printed[4].split(": ")[0] == shown[4].split(": ")[0]
    assert printed[5].startswith("runs/intents: ")
    assert printed[6].startswith("models/intents: ")
    assert len(printed) == len(shown) == 7

    assert shell(head, newcomer).splitlines()[-1].startswith("intents.head: 4 labels of intents, ")
    answers = shell(predict, newcomer).splitlines()
    assert answers[0] == "text\tlabel\tscore\tknown"
    assert re.fullmatch(r"my cousin buys a car\tbuying\t[01]\.\d+\t(True|False)", answers[1])


def test_refused_rows_read_as_the_page_shows(newcomer: Path) -> None:
    command = "gramvec-train fit-pairs my.tsv --bad-rows refuse --out runs/x 2>&1 || true"
    shown = re.findall(r"^gramvec-train: my\.tsv line 1001: .*$", PAGE, re.MULTILINE)[0]
    assert shell(command, newcomer).strip() == shown.replace("1001", "49")


def test_the_limits_that_the_page_states_are_the_defaults() -> None:
    start = Start(bundle=Path("m"))
    assert start.min_count == 2
    assert f"at most {start.max_ngrams:,} n-grams\n  and {start.max_words:,} words" in PAGE
