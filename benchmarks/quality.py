"""python -m benchmarks.quality: every family of `gramvec-train evaluate` on the shipped models and their rivals.

Writes benchmarks/results/quality.json, which `python -m benchmarks.readme` puts into benchmarks/results/README.md:

    {"machine": {...}, "data": digest, "arguments": [...], "reports": {model or rival: report of gramvec-train}}

A report has beside its scores the `commit` that they were made with. `data` is the SHA-256 of the files under --data
that are read. With --only, what other models scored is kept, if data and arguments are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from benchmarks.measure import ROOT, machine
from gramvec_training.cli.main import main
from gramvec_training.evaluation.baselines import PEERS
from gramvec_training.evaluation.report import format_markdown_table, list_family_tables, list_mean_rows

RESULT = ROOT / "benchmarks" / "results" / "quality.json"
MODELS = ("gramvec-en", "charagram-phrase", "paragram-phrase", "sif")
TYPOS = (20, 50)
SAMPLE = 5_000  # lines of a list of misspellings
SIMILARITY = ("sts12", "sts16", "sick", "ppdb", "words")
MISSPELLINGS = ("typos/wikipedia.tsv", "typos/birkbeck.tsv")
SPELLING = (*MISSPELLINGS, "typos/codespell.tsv")
FILES = {
    "--sets": [f"dev/{name}" for name in SIMILARITY],
    "--matching": ["dev/matching"],
    "--retrieval": ["dev/retrieval"],
    "--classification": ["dev/supervised/sst2", "dev/supervised/imdb"],
    "--misspellings": [f"dev/{name}" for name in MISSPELLINGS],
    "--spelling": [f"dev/{name}" for name in SPELLING],
    "--words": ["train/freq/enwiki_vocab_min200.txt.gz"],
    "--seen": ["train/spelling_typos_rs.pairs.tsv.gz"],
}
CHOSEN = ("--typos", ",".join(map(str, TYPOS)), "--sample", str(SAMPLE), "--device", "cpu")


def arguments(data: Path) -> list[str]:
    """Return the arguments of gramvec-train evaluate, without models and peers."""
    named = [(option, str(data / path)) for option, paths in FILES.items() for path in paths]
    return [word for pair in named for word in pair] + list(CHOSEN)


def digest(data: Path) -> str:
    """Return the SHA-256 of the names and bytes of all named files."""
    state = hashlib.sha256()
    for name in sorted({path for paths in FILES.values() for path in paths}):
        root = data / name
        if not root.exists():
            sys.exit(f"There is no {root}; give --data, the folder that holds dev/ and train/.")
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file():
                state.update(path.relative_to(data).as_posix().encode() + b"\0")
                state.update(hashlib.sha256(path.read_bytes()).digest())
    return state.hexdigest()


def score(data: Path, models: Sequence[str], peers: Sequence[str]) -> dict[str, Any]:
    """Return the reports of these models and peers, by their short names."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "scores.json"
        words = [str(ROOT / "models" / name) for name in models]
        words += [word for name in peers for word in ("--peer", name)]
        main(["evaluate", *words, *arguments(data), "--json", str(out)], standalone_mode=False)
        scored = orjson.loads(out.read_bytes())
    return {_short(label): {**one, "name": _short(label)} for label, one in scored.items()}  # no folder of this machine


def tables() -> str:
    """Return the scores as Markdown tables."""
    results = orjson.loads(RESULT.read_bytes())
    where, reports = results["machine"], results["reports"]
    parts = [
        ("Similarity: Pearson x 100, mean over the sets of a task", list_mean_rows(reports)),
        *list_family_tables(reports),
    ]
    commits = ", ".join(dict.fromkeys(report["commit"] for report in reports.values()))
    note = (
        f"{where['packages']}; commit {commits}; data SHA-256 {results['data'][:12]}; "
        f"{SAMPLE:,} misspellings of each list, seed 1."
    )
    return "\n\n".join([*(f"**{title}**\n\n{format_markdown_table(rows)}" for title, rows in parts), note])


def run() -> None:
    """Score and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality")
    folder = os.environ.get("GRAMVEC_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=not folder, help="[$GRAMVEC_DATA]")
    parser.add_argument("--peer", action="append", default=[], help="beside the usual ones, such as model2vec=FOLDER")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="score these alone and keep what the others scored")
    options = parser.parse_args()
    everyone = {**dict.fromkeys(MODELS, "model"), **dict.fromkeys([*PEERS, *options.peer], "peer")}
    unknown = sorted(set(options.only or ()) - everyone.keys())
    if unknown:
        parser.error(f"nobody is called {unknown[0]}; there are {', '.join(everyone)}")
    chosen = everyone if options.only is None else {name: everyone[name] for name in options.only}
    made_from = {"data": digest(options.data), "arguments": arguments(Path())}
    _kept(made_from, options.only)  # that it can be added to is said now, not after an hour
    where = machine()
    found = score(
        options.data,
        [name for name, kind in chosen.items() if kind == "model"],
        [name for name, kind in chosen.items() if kind == "peer"],
    )
    reports = {
        **_kept(made_from, options.only),
        **{name: {"commit": where["commit"], **report} for name, report in found.items()},
    }
    order = [_short(name) for name in everyone]
    reports = dict(sorted(reports.items(), key=lambda one: order.index(one[0]) if one[0] in order else len(order)))
    results = {"machine": where, **made_from, "reports": reports}
    RESULT.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2) + b"\n")


def _kept(made_from: dict[str, Any], only: Sequence[str] | None) -> dict[str, Any]:
    if only is None or not RESULT.exists():
        return {}
    before = orjson.loads(RESULT.read_bytes())
    if any(before[key] != value for key, value in made_from.items()):
        sys.exit(f"{RESULT} was made from other data or arguments; score all models anew, without --only.")
    return dict(before["reports"])


def _short(label: str) -> str:
    return label.split("=")[0].rsplit("/", 1)[-1]


if __name__ == "__main__":
    run()
