"""python -m benchmarks.languages: figures of what is there, and a line for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import languages
from support.families import put

INTENTS = {
    "en": "alarm\twake me at {}\nweather\twill it rain at {}\n",
    "de": "alarm\tweck mich um {}\nweather\tregnet es um {}\n",
}


def test_each_part_is_scored_or_left_out_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for language, lines in INTENTS.items():
        for part, hours in (("train", (5, 6, 7)), ("test", (8, 9))):
            put(
                tmp_path / f"multilingual/xsid/{language}/{part}.tsv",
                "".join(lines.replace("{}", str(hour)) for hour in hours),
            )
    put(tmp_path / "multilingual/tatoeba/deu.tsv", "das Wasser\tthe water\nein Vogel singt\ta bird sings\n")
    for language, texts in {
        "de": ("die Katze schläft", "der Zug fährt"),
        "en": ("the cat sleeps", "the train goes"),
    }.items():
        folder = tmp_path / "multilingual/xquad" / language
        put(folder / "corpus.tsv", "".join(f"p{place}\t{text}\n" for place, text in enumerate(texts)))
        put(folder / "queries.tsv", "".join(f"q{place}\t{text}\n" for place, text in enumerate(texts)))
        put(folder / "qrels.tsv", "q0\tp0\t1\nq1\tp1\t1\n")
    monkeypatch.setattr(languages, "COUNTRIES", ("de",))
    languages.main(tmp_path, languages.MODELS)
    said = capsys.readouterr().out.splitlines()
    assert "  mean of 2" + "100.0".rjust(35) in "\n".join(said)
    assert sum(line.split()[:3] in (["de", "to", "en"], ["en", "to", "de"]) for line in said) == 2
    figures = {line.split("  ")[1]: line.split()[1:] for line in said if line.startswith("  ")}
    assert figures["de"][0].replace(".", "").isdigit() and len(figures["deu"]) == 5
    assert sum(line.startswith("  mean of 1 ") for line in said) == 4
    assert sum("left out: there is no" in line and "people1" in line for line in said) == 4

    languages.main(tmp_path / "nowhere", ["paragram-phrase"])
    assert sum("left out" in line for line in capsys.readouterr().out.splitlines()) == 9


def test_a_translation_that_is_found_counts_once() -> None:
    pairs = languages.Matches(*map(languages.np.array, ([0, 0, 1], [2, 1, 3], [0.9, 0.85, 0.6])))
    assert languages._f1(pairs, 2, 0.8) == pytest.approx(200 * 1 / (2 + 2))
    assert languages._f1(pairs, 2, 0.5) == pytest.approx(200 * 2 / (3 + 2))
