"""make quality: what it calls, what it keeps, and its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from benchmarks import quality
from support.errors import assert_names, refused
from support.families import matching, put, retrieval


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small set of each family where the real ones stand, and no rivals but the one that is named."""
    for name in quality.SIMILARITY:
        put(tmp_path / "dev" / name / "a.tsv", "5\ta dog\tthe dog\n0\ta dog\tstocks fell\n3\tthe dog\tan animal\n")
    matching(tmp_path / "dev/matching/m")
    retrieval(tmp_path / "dev/retrieval/r")
    for name in ("sst2", "imdb"):
        for part in ("train", "test"):
            put(tmp_path / f"dev/supervised/{name}/{part}.tsv", "bad\ta poor film\ngood\ta great film\n")
    for path in quality.SPELLING:
        put(tmp_path / "dev" / path, "great\tgraet\n")
    put(tmp_path / "train/freq/enwiki_vocab_min200.txt.gz", "".join(f"great{i}\n" for i in range(3)) + "great\n")
    put(tmp_path / "train/spelling_typos_rs.pairs.tsv.gz", "poor\tpooor\n")
    monkeypatch.setattr(quality, "RESULT", tmp_path / "quality.json")
    monkeypatch.setattr(quality, "MODELS", ("sif", "paragram-phrase"))
    monkeypatch.setattr(quality, "PEERS", {})
    monkeypatch.setattr(quality, "CHOSEN", ("--typos", "50", "--frequent", "4", "--device", "cpu"))
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, data: Path, *words: str) -> Any:
    monkeypatch.setattr("sys.argv", ["quality", "--data", str(data), *words])
    quality.run()
    return orjson.loads(quality.RESULT.read_bytes())


def test_models_are_scored_together_or_one_by_one(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = run(monkeypatch, data)
    assert list(together["reports"]) == ["sif", "paragram-phrase"]
    assert str(data) not in quality.RESULT.read_text()
    quality.RESULT.unlink()
    run(monkeypatch, data, "--only", "paragram-phrase")
    apart = run(monkeypatch, data, "--only", "sif")
    assert apart == together
    assert apart["reports"]["sif"]["commit"] == apart["machine"]["commit"]
    assert apart["reports"]["sif"]["families"].keys() == {"matching", "retrieval", "classification", "spelling"}

    text = quality.tables()
    assert "|  | sif | paragram-phrase |" in text
    for row in ("| sts16 clean |", "| sts16 50 % |", "| m, 50 % misspelt |", "| r |", "| sst2 |", "| birkbeck |"):
        assert row in text
    assert f"commit {apart['machine']['commit']}; data SHA-256 {apart['data'][:12]}" in text


def test_scores_of_other_data_are_not_kept(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, data, "--only", "sif")
    put(data / "dev/matching/m/left.csv", "id,name\n7,abc\n8,other\n9,ghi\n")
    with refused(SystemExit, "other data"):
        run(monkeypatch, data, "--only", "paragram-phrase")


def test_unknown_names_are_refused(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, data, "--only", "sif", "nobody")
    assert_names(capsys.readouterr().err, "nobody", "sif, paragram-phrase")


def test_missing_data_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(SystemExit, "--data"):
        run(monkeypatch, tmp_path)
