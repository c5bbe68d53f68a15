"""The card of a finished bundle: every figure of it through the bundle, and no other file touched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import gramvec
from gramvec.errors import BundleError
from gramvec.explain.neighbors import find_nearest_words
from gramvec.features.spec import FeatureSpec
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.evaluation import card as bundle_card
from gramvec_training.evaluation.backend import Typos, evaluate_models, serve_model
from gramvec_training.evaluation.card import Candidates, assess, renew
from gramvec_training.evaluation.similarity import find_sets, list_candidate_words, read_words
from gramvec_training.export.adapt import add_lexical
from support.errors import assert_names
from support.training import call, export_table, sentence

WORDS = ["east", "north", "west", "northeast", "not", "able"]
TABLE = np.array([[1, 0], [0, 1], [-1, 0.1], [1, 1], [0.2, 0.1], [0.5, 0.4], [3, 3]], np.float32)
RECORD: dict[str, Any] = {
    "command": "gramvec-train fit words.toml",
    "config": {
        "model": {"dimension": 2, "pooling": "mean", "activation": "linear"},
        "training": {
            "margin": 0.4, "negatives": "max", "batch": 10, "rate": 0.001, "decay": "linear", "seed": 1, "l2": 0.0,
            "l2_center": "zero", "mega_batch": 3, "optimizer": "adagrad",
        },
    },
    "data": [{"name": "pairs", "license": "CC0", "groups": 60, "pairs_per_epoch": 60}],
    "rows": 7, "steps": 20, "pairs": 200, "seconds": 2.0, "device": "cpu", "threads": 1, "pairs_per_second": 100,
    "scores": {"tasks": {}, "notes": []},
}  # fmt: skip


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def export(folder: Path, provenance: dict[str, Any], unknown_words: str = "row") -> Path:
    entries = [Entry("word", word, 10 - row) for row, word in enumerate(WORDS)]
    export_table(
        folder,
        name=folder.name,
        kind="paragram-phrase",
        spec=FeatureSpec(orders=(), words=True, unknown_words=unknown_words),  # type: ignore[arg-type]
        vocabulary=Vocabulary.build([*entries, Entry("unknown", "", 0)]),
        table=TABLE,
        bias=None,
        pooling="mean",
        activation="linear",
        golden_texts=["east north"],
        provenance=provenance,
        card="# before\n",
    )
    return folder


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return export(tmp_path / "models" / "compass", RECORD)


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    (tmp_path / "dev/sts").mkdir(parents=True)
    (tmp_path / "dev/words").mkdir()
    (tmp_path / "dev/sts/a.tsv").write_text(
        "5\teast north\tnortheast\n0\teast east\twest west\n3\tnorth east\tnorth able\n"
    )
    (tmp_path / "dev/words/w.tsv").write_text("5\tnorth\tnortheast\n0\teast\twest\n2\tnorth\tzzz\n")
    (tmp_path / "typos.tsv").write_text("north\tnroth\n")
    return tmp_path / "dev"


def test_nearest_neighbors_by_hand(bundle: Path) -> None:
    embedder = gramvec.load(bundle, device="cpu")
    queries = ["East", "not able", "zzz"]
    found = find_nearest_words(embedder, queries, [*WORDS, "zzz", "yyy"], k=2)
    # Cosines of east: able 0.5 / sqrt(0.41) = 0.781, not 0.2 / sqrt(0.05) = 0.894. "not able" is (0.35, 0.25): to
    # able 0.9968, to northeast 0.9864, to not 0.9878. Unknown words are neither asked nor given.
    assert [[text for text, _ in one] for one in found] == [["not", "able"], ["able", "not"], []]
    assert [cosine for _, cosine in found[0]] == pytest.approx([0.2 / 0.05**0.5, 0.5 / 0.41**0.5])


def test_candidates_are_the_words_of_the_models_and_of_the_sets(bundle: Path, sets: Path, tmp_path: Path) -> None:
    found, _ = find_sets([sets])
    assert list_candidate_words([gramvec.load(bundle, device="cpu")], found) == [*WORDS, "zzz"]
    (tmp_path / "freq.txt").write_text("rare 1\nthe 9\n42 7\nx 5\n-ish 5\nwell-known 5\n")
    assert read_words(tmp_path / "freq.txt") == ["the", "well-known", "rare"]


def test_the_card_holds_what_the_bundle_scores(bundle: Path, sets: Path, tmp_path: Path) -> None:
    word_model = export(tmp_path / "models" / "words", RECORD)
    before = digests(bundle)
    sources = ["--sets", sets, "--misspellings", tmp_path / "typos.tsv"]
    result = call("card", bundle, *sources, "--typos", "50,100", "--beside", word_model)
    assert result.exit_code == 0, result.output
    after = digests(bundle)
    assert {name for name in before if before[name] != after[name]} == {"README.md", "manifest.json"}
    assert not [path for path in bundle.parent.iterdir() if path.name.startswith(".")]

    embedder = gramvec.load(bundle, device="cpu")  # verifies every digest
    assert embedder.manifest.files["README.md"].sha256 == after["README.md"]
    evaluation = embedder.manifest.provenance["evaluation"]
    assert "scores" not in embedder.manifest.provenance
    typos = Typos((50, 100), {"north": ["nroth"]})
    report = evaluate_models([serve_model(embedder)], ["m"], find_sets([sets])[0], typos)["m"]
    for key in ("tasks", "notes", "coverage", "typos"):
        assert evaluation[key] == report[key]
    assert list(evaluation["typos"]["50"]) == ["sts"]
    assert evaluation["beside"]["digest"] == gramvec.load(word_model, device="cpu").digest

    card = (bundle / "README.md").read_text(encoding="utf-8")
    pearson = report["tasks"]["sts"]["sets"]["a"]["pearson"]
    noisy = [report["typos"][key]["sts"]["mean"]["pearson"] for key in ("50", "100")]
    for part in (
        f"| sts/a | 3 | {pearson:.1f} |",
        "| words | 6 | - | 83.3% | 1 |",
        f"| sts | compass | {pearson:.1f} | {noisy[0]:.1f} | {noisy[1]:.1f} |",
        f"| sts | words | {pearson:.1f} |",
        "real misspellings (typos.tsv)",
        "| vehicals | none: nothing of it is known |",
        "| not able | able, not, northeast, east, north, west |",
        "MAX negatives from 3 batches of 10 pairs; lazy AdaGrad at 0.001",
        "| pairs | CC0 | 60 | 60 |",
        "2 s on cpu",
    ):
        assert part in card
    assert str(tmp_path) not in card + (bundle / "manifest.json").read_text()

    again = call("card", bundle, *sources, "--typos", "50,100", "--beside", word_model)
    assert again.exit_code == 0, again.output
    assert digests(bundle) == after  # the same scores, the same bytes


def fails_to_copy(source: Path, target: Path) -> None:
    raise OSError(28, "No space left on device")


def damages(source: Path, target: Path) -> None:
    Path(target).write_bytes(Path(source).read_bytes() + b"x")


@pytest.mark.parametrize(
    ("fault", "message"), [(fails_to_copy, "cannot be replaced .No space left"), (damages, "changed while it was")]
)
def test_a_failure_leaves_the_bundle_as_it_was(
    bundle: Path, sets: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Path, Path], None], message: str
) -> None:
    embedder = gramvec.load(bundle, device="cpu")
    evaluation = assess(embedder, None, find_sets([sets])[0], Typos(), Candidates(WORDS, "here"))
    before = digests(bundle)
    monkeypatch.setattr(bundle_card.shutil, "copyfile", fault)
    with pytest.raises(BundleError, match=message):
        renew(embedder, evaluation)
    assert digests(bundle) == before
    assert list(bundle.parent.iterdir()) == [bundle]


def test_a_card_through_a_link_renews_the_bundle_itself(bundle: Path, sets: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(bundle)
    assert call("card", link, "--sets", sets, "--typos", "50").exit_code == 0
    assert link.is_symlink()
    assert "## Nearest neighbors" in (bundle / "README.md").read_text()


def test_a_card_leaves_the_identity_where_it_is(bundle: Path, sets: Path, tmp_path: Path) -> None:
    model = tmp_path / "named"
    add_lexical(bundle, model, ["some texts", "of all kinds"], columns=16)
    before = gramvec.load(model, device="cpu", space="both").embed(["some names"])
    assert call("card", model, "--sets", sets).exit_code == 0
    after = gramvec.load(model, device="cpu", space="both").embed(["some names"])
    assert after.tobytes() == before.tobytes()


def test_what_has_no_card_is_refused_in_one_sentence(bundle: Path, sets: Path, tmp_path: Path) -> None:
    bare = export(tmp_path / "models" / "bare", {"seed": 1})
    assert "no record of how it was made" in sentence(call("card", bare, "--sets", sets))
    assert "no model" in sentence(call("card", tmp_path / "nowhere", "--sets", sets))
    assert "no such folder" in sentence(call("card", bundle, "--sets", tmp_path / "nowhere"))
    (bundle / "notes.txt").write_text("mine")
    assert_names(sentence(call("card", bundle, "--sets", sets)), "notes.txt")
    assert (bundle / "notes.txt").read_text() == "mine"


def test_evaluate_prints_typos_coverage_json_and_markdown(bundle: Path, sets: Path, tmp_path: Path) -> None:
    options = ["--sets", sets, "--typos", "100,50,100", "--misspellings", tmp_path / "typos.tsv"]
    text = call("evaluate", bundle, *options)
    assert text.exit_code == 0, text.output
    rows = [line.rsplit(None, 1)[0].strip() for line in text.stdout.splitlines() if line.startswith("sts ")]
    assert rows[:5] == ["sts mean", "sts pooled", "sts clean", "sts 100 %", "sts 50 %"]
    assert rows[5].split() == ["sts", "-", "/", "100.0%,"]
    piped = call("evaluate", bundle, *options, "--json", "-", "--markdown", tmp_path / "s.md")
    report = orjson.loads(piped.stdout)[str(bundle)]
    assert list(report["typos"]) == ["100", "50"]
    assert report["coverage"]["words"]["texts_unknown"] == 1
    assert f"| sts 50 % | {report['typos']['50']['sts']['mean']['pearson']:.1f} |" in (tmp_path / "s.md").read_text()
    reseeded = call("evaluate", bundle, *options, "--seed", "7", "--json", "-")
    assert orjson.loads(reseeded.stdout)[str(bundle)]["typos"] != report["typos"]
    unwritable = call("evaluate", bundle, "--sets", sets, "--json", tmp_path / "no/such.json")
    assert unwritable.exit_code == 1
    assert "cannot be written" in unwritable.stderr


@pytest.mark.parametrize("typos", ["0", "101", "ten", "10;20", "10,,20"])
def test_bad_percentages_exit_with_2(typos: str) -> None:
    result = call("evaluate", "x", "--sets", "y", "--typos", typos)
    assert result.exit_code == 2
    assert "give percentages from 1 to 100" in result.stderr
