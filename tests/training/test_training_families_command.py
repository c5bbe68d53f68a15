"""gramvec-train evaluate on matching, retrieval, classification and spelling, as its user calls it."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import orjson
import pytest

from gramvec.features.spec import FeatureSpec
from gramvec.text.vocabulary import Entry, Vocabulary
from support.families import LETTERS, matching, put, retrieval
from support.reports import report_of
from support.training import call, export_table, sentence


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The letters of a text, counted."""
    folder = tmp_path_factory.mktemp("models") / "letters"
    export_table(
        folder,
        name="letters",
        kind="charagram-phrase",
        spec=FeatureSpec(orders=(1,), words=False),
        vocabulary=Vocabulary.build([Entry("ngram", letter, 1) for letter in LETTERS]),
        table=np.eye(26, dtype=np.float32),
        golden_texts=["abc"],
        provenance={},
        card="# letters\n",
    )
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    matching(tmp_path / "matching" / "m")
    retrieval(tmp_path / "retrieval" / "r")
    put(tmp_path / "classes.tsv", "".join(f"{letter}\t{letter}{letter}{i}\n" for letter in "ab" for i in range(5)))
    put(tmp_path / "words.txt", "abc\ndef\nghi\n")
    put(tmp_path / "typos.tsv", "abc\tabb\nghi\tghhh\n")
    put(tmp_path / "seen.tsv", "abc\tabb\n")
    put(tmp_path / "dev/sts/a.tsv", "5\tabc\tabc x\n0\tabc d\txyz\n3\tab\tabcd\n")
    return tmp_path


def options(data: Path) -> list[str | Path]:
    return [
        "--matching", data / "matching", "--columns", "m=name", "--retrieval", data / "retrieval",
        "--classification", data / "classes.tsv", "--spelling", data / "typos.tsv", "--words", data / "words.txt",
        "--frequent", "3", "--seen", data / "seen.tsv",
    ]  # fmt: skip


def test_evaluate_scores_every_family(bundle: Path, data: Path) -> None:
    sets = ["--sets", data / "dev", "--typos", "50"]
    result = call("evaluate", bundle, *options(data), *sets, "--json", data / "s.json", "--markdown", data / "s.md")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""  # no bar where nobody watches
    report = orjson.loads((data / "s.json").read_bytes())[str(bundle)]
    found = report["families"]
    of_matching = found["matching"]["m"]
    assert (of_matching["pairs"], of_matching["f1"], of_matching["threshold"]) == (2, 100, pytest.approx(0.5))
    assert of_matching["recall_at"] == {"1": 100, "10": 100}
    assert found["retrieval"]["r"]["ndcg_at_10"] == pytest.approx(100 * (1 + 1 / math.log2(3)) / 2)
    assert {key: found["classification"]["classes"][key] for key in ("texts", "nearest", "centroid", "logistic")} == {
        "texts": 2, "nearest": 100, "centroid": 100, "logistic": 100,
    }  # fmt: skip
    assert found["spelling"]["typos"] == {
        "misspelt": 2, "unseen": 1, "words": 3, "found_at": {"1": 100, "3": 100, "10": 100},
        "found_unseen_at": {"1": 100, "3": 100, "10": 100},
    }  # fmt: skip
    assert report["tasks"]["sts"]["sets"]["a"]["pairs"] == 3
    for family, name in (("matching", "m"), ("retrieval", "r"), ("classification", "classes")):
        assert list(found[family][name]["typos"]) == ["50"]
    rows = [line.split() for line in result.stdout.split("\n")]
    assert ["m", "100.0"] in rows
    assert ["typos", "100.0", "(100.0)"] in rows
    assert "| m, 50 % misspelt |" in (data / "s.md").read_text()


def test_a_page_shows_the_scores_side_by_side(bundle: Path, data: Path) -> None:
    page = data / "scores.html"
    called = ["evaluate", bundle, *options(data), "--sets", data / "dev", "--peer", "tfidf", "--report", page]
    result = call(*called)
    assert result.exit_code == 0, result.output
    assert result.stderr == f"{page} shows what was done: open it in a browser\n"
    report = report_of(page)
    facts = dict(report["facts"])
    assert facts["command"].startswith(f"gramvec-train evaluate {bundle} ")
    assert facts["rows"] == "3 of sts/a"
    assert str(bundle) in facts["models"] and "SHA-256" in facts["models"]
    similarity = report["comparisons"][0]
    shown = {cell for row in similarity["table"]["rows"] for cell in row[1:]}
    assert shown <= set(result.stdout.split())
    drawn = {(one["row"], one["series"]) for one in similarity["values"]}
    assert {("sts/a", bundle.name), ("sts/a", "tfidf")} <= drawn
    (farthest,) = report["pairs"]
    assert {pair["left"] for pair in farthest["pairs"]} == {"sts/a"}
    assert len(farthest["pairs"]) == 3
    refused = call("evaluate", bundle, "--sets", data / "dev", "--report", "scores.pdf")
    assert (refused.exit_code, "name a file that ends in .html" in refused.stderr) == (2, True)


def test_the_same_call_gives_the_same_bytes(bundle: Path, data: Path) -> None:
    first, again = (call("evaluate", bundle, *options(data), "--typos", "50", "--json", "-").stdout for _ in range(2))
    assert first == again != ""


def test_rivals_stand_in_the_same_table(bundle: Path, data: Path) -> None:
    pytest.importorskip("rapidfuzz")
    asked = ["--peer", "rapidfuzz", "--sets", data / "dev", "--typos", "50"]
    result = call("evaluate", bundle, *options(data), *asked, "--json", data / "s.json")
    assert result.exit_code == 0, result.output
    reports = orjson.loads((data / "s.json").read_bytes())
    assert list(reports) == [str(bundle), "rapidfuzz"]
    rival = reports["rapidfuzz"]
    assert rival["families"]["matching"]["m"]["recall_at"] == {"1": 100, "10": 100}
    assert rival["families"]["classification"]["classes"]["logistic"] is None
    assert rival["tasks"].keys() == rival["typos"]["50"].keys() == {"sts"}
    header = next(line for line in result.stdout.split("\n") if line.endswith("rapidfuzz"))
    assert header.split() == [str(bundle), "rapidfuzz"]
    alone = call("evaluate", *options(data), "--peer", "rapidfuzz", "--json", "-")
    assert orjson.loads(alone.stdout)["rapidfuzz"]["families"]["spelling"] == rival["families"]["spelling"]


def test_all_rivals_are_those_that_are_installed(bundle: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("rapidfuzz.fuzz", "sklearn.feature_extraction.text"):
        monkeypatch.setitem(sys.modules, module, None)
    result = call("evaluate", bundle, "--sets", data / "dev", "--peer", "all", "--json", "-")
    assert list(orjson.loads(result.stdout)) == [str(bundle), "match"]  # which needs no library that training has not
    assert [line.split()[0] for line in result.stderr.splitlines()] == [
        "tfidf",
        "tfidf-3-5",
        "tfidf-words",
        "rapidfuzz",
    ]


def test_misspellings_that_were_seen_are_not_used_for_typos(bundle: Path, data: Path) -> None:
    put(data / "known.tsv", "abc\tqqqqqq\n")
    put(data / "other.tsv", "abc\trrrrrr\n")
    put(data / "dev/sts/a.tsv", "".join(f"{i}\tabc abc abc {'abc ' * i}\tabc abc abc\n" for i in range(60)))
    base = ["evaluate", bundle, "--sets", data / "dev", "--typos", "100", "--json", "-"]
    plain, known, unseen = (
        orjson.loads(call(*base, *more).stdout)[str(bundle)]["typos"]
        for more in (
            [],
            ["--misspellings", data / "known.tsv"],
            ["--misspellings", data / "known.tsv", "--seen", data / "known.tsv"],
        )
    )
    assert plain == unseen != known


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--matching": "nowhere"}, "no matching set"),
        ({"--retrieval": "nowhere"}, "no retrieval set"),
        ({"--classification": "nowhere"}, "no such file"),
        ({"--spelling": "nowhere"}, "no such file"),
        ({"--words": "nowhere"}, "no such file"),
        ({"--frequent": "4"}, "3 different words, not 4"),
        ({"--seen": "nowhere"}, "no such file"),
        ({"--columns": "m"}, "--columns 'm' is not a set's name"),
        ({"--columns": "x=name"}, "no matching set 'x'"),
        ({"--columns": "m=name,color"}, "left.csv: no column 'color'"),
        ({"--peer": "nobody"}, "--peer 'nobody': no such baseline"),
        ({"--json": "nowhere/s.json"}, "cannot be written (there is no folder"),
    ],
)
def test_wrong_input_is_one_sentence(bundle: Path, data: Path, change: dict[str, str], message: str) -> None:
    ((option, value),) = change.items()
    words = options(data)
    value = str(data / value) if "nowhere" in value else value
    if option in words:
        words[words.index(option) + 1] = value
    else:
        words += [option, value]
    assert message in sentence(call("evaluate", bundle, *words))


def test_two_sets_of_one_name_are_refused(bundle: Path, data: Path) -> None:
    put(data / "other/classes.tsv", (data / "classes.tsv").read_text())
    words = ["--classification", data / "classes.tsv", "--classification", data / "other/classes.tsv"]
    assert "two sets for classification are called 'classes'" in sentence(call("evaluate", bundle, *words))
