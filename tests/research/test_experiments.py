"""The papers' experiments, over vectors and sets that are small enough to know the answer."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import MODELS, ROOT
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec_research.catalog import EXPERIMENTS, PAPERS, experiment_named
from gramvec_research.page import Result, list_drawings, make_page, perform, read_results
from gramvec_research.papers.paragram import measure_rare_share, measure_separation
from gramvec_research.shared import ExperimentInputs, Finding, ResultTable
from gramvec_research.systems import list_higher_sets
from gramvec_training.data.vocabulary import build_vocabulary
from support.errors import assert_names
from support.training import call as train
from support.training import export_table, sentence
from support.training import research as call

pytestmark = pytest.mark.slow

RESEARCH = ROOT / "training" / "gramvec_research"
SUBJECTS = ("cat", "dog", "car", "tree", "river", "house")
FILLERS = ("the", "of", "and", "to")
LEARNED = (
    "mined_phrases.pairs", "tatoeba_pivot.groups", "cf_ppdb_synonyms.pairs", "mqr.groups", "ppdb_xl_lexical.pairs",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words that mean something on axes of their own, and frequent ones that share a long one and mean nothing."""
    path = tmp_path_factory.mktemp("experiments")
    rng = np.random.default_rng(1)
    rows = {word: np.eye(10)[index] for index, word in enumerate(SUBJECTS)}
    rows |= {word: 2 * np.eye(10)[7] + rng.normal(0, 0.3, 10) for word in FILLERS}
    lines = [f"{word} {' '.join(f'{one:.4f}' for one in row)}\n" for word, row in rows.items()]
    (path / "v.txt").write_text("".join(lines))
    counts = {**dict.fromkeys(FILLERS, 100_000), **dict.fromkeys(SUBJECTS, 10)}
    (path / "f.txt").write_text("".join(f"{word} {count}\n" for word, count in counts.items()))
    (path / "g.txt").write_text("".join(f"{word} {count + 5}\n" for word, count in counts.items()))

    def pairs(number: int) -> list[str]:
        found = []
        for _ in range(number):
            left, right = rng.choice(SUBJECTS, 2), rng.choice(SUBJECTS, 2)
            score = len(set(left) & set(right))
            unknown = ["zyzzyva"] * int(rng.integers(0, 2))
            a, b = (" ".join([*side, *unknown, *rng.choice(FILLERS, rng.integers(1, 6))]) for side in (left, right))
            found.append(f"{score}\t{a}\t{b}\n")
        return found

    for task in ("one", "two"):
        (path / task).mkdir()
        (path / task / "set.tsv").write_text("".join(pairs(80)))
    (path / "phrases").mkdir()
    (path / "phrases" / "phrases.tsv").write_text("".join(pairs(40)))
    (path / "words").mkdir()
    couples = [f"{int(rng.integers(0, 9))}\t{a}\t{b}\n" for a in SUBJECTS for b in SUBJECTS if a < b]
    (path / "words" / "simlex999.tsv").write_text("".join(couples))
    (path / "data").mkdir()
    for name in LEARNED:
        rows = "".join(row.split("\t", 1)[1] for row in pairs(300) if row[0] == "2")
        (path / "data" / f"{name}.tsv.gz").write_bytes(gzip.compress(rows.encode()))
    (path / "data" / "raw").mkdir()
    raw = "".join(row.split("\t", 1)[1].replace("\t", " ") for row in pairs(300))
    (path / "data" / "raw" / "more_wikipedia_c.txt.gz").write_bytes(gzip.compress(raw.encode()))
    pairs_of_labels = "".join(f"{'YES' if row[0] == '2' else 'NO'}{row[1:]}" for row in pairs(30))
    single = "".join(f"{int(row[0] == '2')}\t{row.split(chr(9))[1]}\n" for row in pairs(30))
    files = {
        "sick/train.tsv": "".join(pairs(30)), "sick/train.entail.tsv": pairs_of_labels,
        "sick/trial.entail.tsv": pairs_of_labels, "snli/dev.tsv": pairs_of_labels, "snli/test.tsv": pairs_of_labels,
        **{f"sst2/binary.{part}.tsv": single for part in ("train", "dev", "test")},
        **{f"imdb/{part}.tsv": single for part in ("train", "dev", "test")},
    }  # fmt: skip
    for name, text in files.items():
        (path / "supervised" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / "supervised" / name).write_text(text)
    (path / "sick").mkdir()
    (path / "sick" / "trial.tsv").write_text("".join(pairs(30)))
    (path / "pos").mkdir()
    for part in ("train", "dev", "test"):
        sentences = [[f"1\t{left}\t_\t_\tNN\t_\t_\t_\t_\t_\n", f"2\t{right}\t_\t_\tIN\t_\t_\t_\t_\t_\n\n"]
                     for left in SUBJECTS for right in FILLERS]  # fmt: skip
        (path / "pos" / f"en-ud-{part}.conllu").write_text("".join(line for one in sentences for line in one))
    (path / "pos" / "wsj_sample.tsv").write_text("Cat\tNN\nof\tIN\n\nto\tTO\n\n")
    return path


def inputs(folder: Path) -> ExperimentInputs:
    return ExperimentInputs(
        folder / "v.txt", (folder / "f.txt", folder / "g.txt"), (folder / "one", folder / "two"), folder / "v.txt",
        folder / "data", folder / "phrases" / "phrases.tsv", (folder / "words" / "simlex999.tsv",), MODELS,
        folder / "work", (1,), folder / "supervised", folder / "pos",
    )  # fmt: skip


@pytest.mark.parametrize("name", [one.name for one in EXPERIMENTS])
def test_each_gives_rows_of_the_same_columns_and_says_what_holds(folder: Path, name: str) -> None:
    outcome = experiment_named(name).run(inputs(folder))
    assert outcome.rows
    assert len({tuple(row) for row in outcome.rows}) == 1
    assert outcome.findings
    assert all(one.claim and one.seen for one in outcome.findings)
    assert outcome == experiment_named(name).run(inputs(folder))


def test_weights_help_where_frequent_words_mean_nothing(folder: Path) -> None:
    outcome = experiment_named("sif-table-6").run(inputs(folder))
    found = {(row["task"], row["system"]): float(row["pearson"] or 0) for row in outcome.rows}
    for task in ("one", "two"):
        assert found[task, "W"] > found[task, "avg"] + 10
        assert found[task, "WR"] > found[task, "avg"] + 10
    assert outcome.findings[0].claim.startswith("avg < W < WR")


def test_subsampling_by_hand(folder: Path) -> None:
    """At p = 1e-3: sqrt(1e-5 / 1e-3) = 0.1, and 1e-4 / (1e-4 + 1e-3) = 1 / 11."""
    rows = experiment_named("sif-figure-1").run(inputs(folder)).rows
    (row,) = [row for row in rows if row["p"] == pytest.approx(1e-3)]
    assert (row["word2vec"], row["SIF, a = 1e-4"]) == (0.1, 0.0909)


def test_the_common_component_is_that_of_the_fillers(folder: Path) -> None:
    """With words weighted alike: they are all that the sentences share."""
    (folder / "flat.txt").write_text("".join(f"{word} 1\n" for word in (*FILLERS, *SUBJECTS)))
    given = ExperimentInputs(folder / "v.txt", (folder / "flat.txt",), (folder / "one",))
    (row,) = experiment_named("sif-common-words").run(given).rows
    assert set(str(row["words"]).split(", ")[: len(FILLERS)]) == set(FILLERS)


def test_vectors_of_a_bundle_and_of_a_run(folder: Path, tmp_path: Path) -> None:
    spec = FeatureSpec(orders=(), words=True)
    vocabulary = build_vocabulary([" ".join((*SUBJECTS, *FILLERS))], spec)
    lines = dict(line.split(" ", 1) for line in (folder / "v.txt").read_text().splitlines())
    table = np.array([lines[one.text].split() for one in vocabulary.entries()], np.float32)
    export_table(
        tmp_path / "b", name="b", kind="sif", spec=spec, vocabulary=vocabulary, table=table, pooling="mean",
        provenance={}, card="",
    )  # fmt: skip
    options = ["--vectors", folder / "v.txt", "--freq", folder / "f.txt", "--components", "0", "--weights", "none"]
    assert train("sif", *options, "--out", tmp_path / "run").exit_code == 0
    given = inputs(folder)
    expected = experiment_named("sif-table-6").run(given)
    for vectors in (tmp_path / "b", tmp_path / "run"):
        found = experiment_named("sif-table-6").run(ExperimentInputs(vectors, given.frequencies, given.sets))
        assert found == expected


def test_what_is_learned_is_learned_once(folder: Path) -> None:
    """The second time no run is written again; other pairs have other runs."""
    given = replace(inputs(folder), work=folder / "again")
    first = experiment_named("paragram-amount").run(given)
    written = {path: path.stat().st_mtime_ns for path in given.work.glob("*/run.json")}
    assert len(written) == 2
    assert experiment_named("paragram-amount").run(given) == first
    assert {path: path.stat().st_mtime_ns for path in given.work.glob("*/run.json")} == written
    shutil.copytree(folder / "data", folder / "other")
    (folder / "other" / "mined_phrases.pairs.tsv.gz").write_bytes(gzip.compress(b"cat of\tcat to\ndog\tdog the\n" * 70))
    experiment_named("paragram-amount").run(replace(given, data=folder / "other"))
    assert len(list(given.work.glob("*/run.json"))) > len(written)


def test_wins_by_hand() -> None:
    """Equal scores are nobody's win, nor are undefined ones."""
    mine = {"a/1": 3.0, "a/2": 2.0, "b/1": 5.0, "b/2": math.nan}
    other = {"a/1": 1.0, "a/2": 2.0, "b/1": 4.0, "b/2": 0.0}
    assert list_higher_sets(mine, other) == ["a/1", "b/1"]
    assert list_higher_sets(mine, other, ["a/1", "a/2"]) == ["a/1"]
    assert list_higher_sets(other, mine) == list_higher_sets(mine, mine) == []


def test_wins_are_those_of_the_scores_of_the_sets(folder: Path) -> None:
    given = inputs(folder)
    scores = {row["set"]: row for row in experiment_named("all-systems-sets").run(given).rows}
    table = {row["system"]: row for row in experiment_named("all-systems-wins").run(given).rows}
    assert set(scores) == {"one/set", "two/set"}
    for one, other in itertools.permutations(("PP", "CHARAGRAM", "charLSTM", "SIF"), 2):
        above = [float(row[one] or 0) - float(row[other] or 0) for row in scores.values()]
        if min(map(abs, above)) > 0.1:  # as they are rounded
            assert table[one][other] == sum(value > 0 for value in above)
    for row in table.values():
        others = [value for name, value in row.items() if name in table and value is not None]
        assert sum(map(int, others)) == int(row["one, of 12"] or 0) + int(row["two, of 12"] or 0)


def test_the_papers_numbers_of_parameters(folder: Path) -> None:
    rows = {row["what"]: row for row in experiment_named("charagram-parameters").run(inputs(folder)).rows}
    assert rows["charLSTM, with output gate"]["parameters"] == 4 * (2 * 300**2 + 300) + 3 * 300 + 134 * 300
    assert rows["LSTM over words, with output gate"]["parameters"] == rows["LSTM over words, with output gate"]["paper"]


def test_bins_by_hand(folder: Path, tmp_path: Path) -> None:
    """Words without a row, of both texts; the longer text's words."""
    (tmp_path / "sts").mkdir()
    rows = ["1\tcat of zyzzyva\tdog qwx", "2\tcat the dog to\tdog of", "3\tcat\tcat of of of zyzzyva"]
    (tmp_path / "sts" / "set.tsv").write_text("".join(f"{row}\n" for row in rows))
    given = replace(inputs(folder), sets=(tmp_path / "sts",))
    unknown = experiment_named("charagram-table-6").run(given)
    assert [row["pairs"] for row in unknown.rows] == [1, 1, 1, 2, 3]
    assert all(row["PP"] is None for row in unknown.rows)  # too few to score
    lengths = experiment_named("charagram-table-7").run(given).rows
    assert [row["pairs"] for row in lengths] == [2, 1, 0, 0, 0, 0, 0, 0, 0, 0]


def test_undertrained_words_by_hand() -> None:
    """Seen 3, 2 and 1 times; of five words of the texts one is unknown, which training never saw, and two are rare."""
    spec = FeatureSpec(orders=(), words=True, unknown_words="row")
    vocabulary = build_vocabulary(["cat cat cat dog dog tree"], spec)
    counts = np.array([entry.count for entry in vocabulary.entries()])
    texts = ["cat dog", "cat tree zyzzyva"]
    shares = [measure_rare_share(texts, Featurizer(spec, vocabulary), counts, least) for least in (1, 2, 3, 4)]
    assert shares == [1 / 5, 2 / 5, 3 / 5, 1]


def test_separation_by_hand() -> None:
    """Two pairs on axes: each text is its partner, and at right angles or opposite to the others."""
    left = np.array([[1, 0], [0, 2]], np.float32)
    assert measure_separation(left, left) == pytest.approx(2)
    assert measure_separation(left, np.array([[0, 1], [0, 2]], np.float32)) == pytest.approx(
        ((2 * 0 - 0 - 1) + (2 * 1 - 1 - 1)) / 2
    )


def options_of(folder: Path) -> list[str | Path]:
    given = inputs(folder)
    return [
        "--vectors", given.vectors, "--freq", folder / "f.txt", "--freq", folder / "g.txt", "--sets", folder / "one",
        "--sets", folder / "two", "--data", folder / "data", "--in-domain", folder / "phrases" / "phrases.tsv",
        "--word-sets", folder / "words" / "simlex999.tsv", "--models", MODELS, "--norms-of", folder / "v.txt",
        "--labeled", folder / "supervised", "--tagged", folder / "pos", "--seeds", "1",
    ]  # fmt: skip


def test_all_quickly_then_not_again_and_the_page(folder: Path, tmp_path: Path) -> None:
    options = [*options_of(folder), "--out", tmp_path / "results"]
    done = call("run", "all", "--quick", *options)
    names = {f"{one.name}.json" for one in EXPERIMENTS}
    assert {path.name for path in (tmp_path / "results").glob("*.json")} == names, done.stderr
    again = call("run", "all", "--quick", *options)
    assert again.stdout.count("--again runs it anew") == len(EXPERIMENTS)
    # Nothing of a cut of the data is shown.
    assert "no result" in sentence(call("page", "--results", tmp_path / "results"))

    one = ["run", "sif-figure-2a", *options]
    assert call(*one).exit_code == 0
    written = json.loads((tmp_path / "results" / "sif-figure-2a.json").read_text())
    assert written["quick"] is False
    assert written["seeds"] == [1]
    assert {"vectors", "frequencies f.txt", "set one", "raw more_wikipedia_c.txt.gz"} < set(written["digests"])
    where = ["--results", tmp_path / "results", "--out", tmp_path / "docs" / "page.md"]
    assert call("page", *where).exit_code == 0
    assert (tmp_path / "docs" / "images" / "sif-figure-2a.png").read_bytes().startswith(b"\x89PNG")
    assert call("page", *where, "--check").exit_code == 0
    text = (tmp_path / "docs" / "page.md").read_text()
    assert "### sif-figure-2a" in text
    (tmp_path / "docs" / "page.md").write_text(text + "more\n")
    assert "not what the results give" in sentence(call("page", *where, "--check"))


def test_a_result_is_made_anew_when_its_inputs_change(folder: Path, tmp_path: Path) -> None:
    experiment = experiment_named("sif-table-6")
    assert perform(experiment, inputs(folder), tmp_path, quick=False, again=False)[1] is False
    assert perform(experiment, inputs(folder), tmp_path, quick=False, again=False)[1] is True
    assert perform(experiment, inputs(folder), tmp_path, quick=False, again=True)[1] is False
    other = replace(inputs(folder), sets=(folder / "one",))
    assert perform(experiment, other, tmp_path, quick=False, again=False)[1] is False
    assert set(read_results(tmp_path)) == {"sif-table-6"}
    (tmp_path / "sif-table-6.json").write_text("{}")
    with pytest.raises(InputError, match=r"not a result of"):
        read_results(tmp_path)


def test_quick_fails_where_a_sure_finding_does_not_hold(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsound = replace(
        EXPERIMENTS[-1], run=lambda _: ResultTable(({"a": 1},), (Finding("water is wet", False, "dry", sure=True),))
    )
    monkeypatch.setattr("gramvec_research.catalog.experiment_named", lambda _: unsound)
    run = ["run", unsound.name, *options_of(folder)]
    result = call(*run, "--quick", "--out", tmp_path / "quick")
    assert result.exit_code == 1
    assert f"1 of 1 failed: {unsound.name}" in result.stderr
    assert call(*run, "--out", tmp_path / "full").exit_code == 0


def test_the_outline_names_every_experiment_and_says_why_something_is_not_there() -> None:
    items = [item for paper in PAPERS for item in paper.items]
    assert {name for item in items for name in item.experiments} == {one.name for one in EXPERIMENTS}
    assert all(item.experiments or item.missing for item in items)


def test_what_the_outline_says_of_a_claim_is_the_claim_of_a_committed_result() -> None:
    results = read_results(RESEARCH / "results")
    for item in (item for paper in PAPERS for item in paper.items):
        there = [results[name] for name in item.experiments if name in results]
        claims = [finding.claim for one in there for finding in one.outcome.findings]
        assert all(any(claim.startswith(start) for claim in claims) for start in item.about if there), item.where


def test_the_page_says_no_and_what_is_lacking() -> None:
    outcome = ResultTable(({"a": 0.1, "SN": 2.0}, {"a": "none (avg)", "SN": 1.0}), (Finding("f", False, "s"),))
    levels = ({"a": "all", "SN": 1.0, "given vectors": 2.0}, {"a": "one", "SN": 3.0, "given vectors": 3.0})
    results = {"sif-figure-2a": Result("sif-figure-2a", False, "abc", (), 1.0, {}, outcome)}
    results["paragram-table-6"] = replace(results["sif-figure-2a"], experiment="paragram-table-6")
    text = make_page(results)
    assert "| [sif-figure-2a](#sif-figure-2a) | no: 0 of 1 |" in text
    assert "[paragram-table-6](#paragram-table-6); in part: of the paper's sets STS 2012 alone is here" in text
    assert "sif-table-6: not run yet" in text
    assert "SNLI's training part cannot be had" in text
    assert "- **no**: f (s)" in text
    assert list_drawings(results)["sif-figure-2a"] == ("a", {"SN": [(0.1, 2.0)], "none (avg)": [(0.0, 1.0)]})
    other = replace(results["sif-figure-2a"], outcome=ResultTable(levels, ()))
    curves = {"SN, all": [(0.0, 1.0)], "given vectors, all": [(0.0, 2.0)], "one": [(0.0, 3.0)]}
    assert list_drawings({"sif-figure-2a": other})["sif-figure-2a"] == ("a", curves)


def test_the_committed_page_is_what_the_committed_results_give() -> None:
    assert (RESEARCH / "page.md").read_text(encoding="utf-8") == make_page(read_results(RESEARCH / "results"))


def test_the_commands(folder: Path, tmp_path: Path) -> None:
    listed = call("list")
    assert listed.exit_code == 0
    for one in EXPERIMENTS:
        assert f"{one.name} " in listed.stdout
        assert one.stands_in in listed.stdout
    options: list[str | Path] = ["--vectors", folder / "v.txt", "--freq", folder / "f.txt", "--sets", folder / "one"]
    options += ["--out", tmp_path / "out", "--models", tmp_path / "none", "--data", tmp_path / "none"]
    result = call("run", "sif-table-6", *options)
    assert result.exit_code == 0, result.output
    assert "| one | WR |" in result.stdout
    assert "avg < W < WR on the mean of the tasks (" in result.stdout
    written = json.loads((tmp_path / "out" / "sif-table-6.json").read_text())
    assert written["experiment"] == "sif-table-6"
    assert len(written["outcome"]["rows"]) == 5
    assert_names(sentence(call("run", "t6", *options)), "t6", "all-systems")
    assert "give --norms-of" in sentence(call("run", "paragram-norms", *options))
    assert "give --labeled" in sentence(call("run", "sif-table-8", *options))
    assert "give --data" in sentence(call("run", "all-systems", *options))
    assert "give --tagged" in sentence(call("run", "charagram-table-4", *options))
    assert "give --models" in sentence(call("run", "charagram-table-8", *options))
    assert "Commands:" in call("--help").stdout
    (tmp_path / "other.txt").write_text("zebra 1 2\n")
    options[1] = tmp_path / "other.txt"
    assert "no vector for any word" in sentence(call("run", "sif-table-6", *options))
