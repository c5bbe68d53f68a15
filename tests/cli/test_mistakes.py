"""docs/errors.md: each command and each call of the page is run, and answers with the sentence below it.

Other tests assert the kind of an error and the names in it: a better sentence is an edit of that page alone.
"""

from __future__ import annotations

import gzip
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

import gramvec
from conftest import MODELS, ROOT
from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.cli import cli
from gramvec.errors import GramvecError
from gramvec.jobs.search import Index
from support.pages import difference

PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
WITHOUT = "An extra is not installed"
EXTRAS = ("pyarrow", "python_calamine", "scipy", "sklearn", "sparse_dot_topn", "tantivy", "threadpoolctl")
MODEL, DATA = '[model]\nname = "m"\nkind = "gramvec"\n', '[[data]]\npath = "pairs.tsv"\n'
FILES = {
    "things.csv": "id,title,price\n1,red car,3\n2,blue car,4\n3,green tea,5\n",
    "wares.csv": "id,name\n7,a red car\n8,tea that is green\n",
    "things.txt": "red car\n",
    "twice.csv": "id,title\n1,red car\n1,blue car\n",
    "latin.csv": "id,title\n1,café\n".encode("cp1252"),
    "ragged.csv": "id,title\n1,red car\n2\n",
    "broken.jsonl": '{"text": "red car"}\n{"text": "blue car"\n',
    "null.jsonl": '{"text": "red car"}\n{"text": null}\n',
    "cut.parquet": "PAR1cut",
    "things.parquet": "PAR1",
    "things.xlsx": "PK",
    "cut.csv.gz": gzip.compress(b"id,title\n1,red car\n")[:-9],
    "prices.csv": "id,price=eur\n1,3\n",
    "frame.json": '{"id": {"0": 1, "1": 2}, "title": {"0": "red car", "1": "blue car"}}',
    "empty.csv": "",
    "notes.docx": "notes",
    "mine.csv": "my own work\n",
    "key.pem": "",
    "intents.tsv": "travel\tbook a flight\nfood\tbuy some tea\n" * 9,
    "empty.tsv": "",
    "same.tsv": "travel\tbook a flight\ntravel\tbook a train\n",
    "labels.csv": "left,right,match\n1,7,1\n",
    "pairs.tsv": "red car\tcar that is red\nblue car\n" + "".join(f"car {n}\tvan {n}\n" for n in range(9)),
    "commas.tsv": "red car,car that is red\nblue car,car that is blue\n",
    "swapped.tsv": "book a flight\ttravel\nbook a train\ttravel\nbuy some tea\tfood\n",
    "apart.tsv": "travel\tbook a flight\nfood\tbuy some tea\n",
    "scored.tsv": "red car\tcar that is red\t1\nblue car\tgreen tea\t0\n" * 3,
    "broken.toml": "[model\n",
    "unknown.toml": f"{MODEL}[training]\nsteps = 9\nmargn = 0.4\n{DATA}",
    "gru.toml": f'{MODEL}[encoder]\nkind = "gru"\n[training]\nsteps = 9\n{DATA}',
    "triplet.toml": f'{MODEL}[objective]\nkind = "triplet"\n[training]\nsteps = 9\n{DATA}',
}


def read_page() -> Iterator[tuple[str, str, str]]:
    """Yield the heading of each command or call, itself, and its answer."""
    for section in PAGE.split("\n## ")[1:]:
        heading = section.partition("\n")[0]
        for block in re.findall(r"^```(?:console|pycon)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE):
            for row in re.split(r"^(?=\$ |>>> )", block, flags=re.MULTILINE)[1:]:
                call, _, answer = row.partition("\n")
                yield heading, call, answer.rstrip("\n")


ROWS = list(read_page())
COMMANDS = [(heading, row[2:], answer) for heading, row, answer in ROWS if row.startswith("$ ")]
CALLS = [(heading, row[4:], answer) for heading, row, answer in ROWS if row.startswith(">>> ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page, an index, and something that is in the place of a model."""
    made = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (made / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (made / "models").mkdir()
    (made / "models" / DEFAULT_MODEL).symlink_to(MODELS / DEFAULT_MODEL)
    (made / "mine").mkdir()
    (made / "mine" / "notes.txt").touch()
    records = [{"id": "1", "title": "red car", "price": "3"}, {"id": "2", "title": "green tea", "price": "5"}]
    Index.build(made / "things.index", records, column="title", id="id", filter=["price:number"])
    return made


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the page as the working folder, with the default model only."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("gramvec.bundle.resolve.model_folders", lambda: [Path("models")])
    return folder


class WithoutExtras:
    """A finder of modules that does not find those of EXTRAS."""

    def __init__(self, finder: Any) -> None:
        self.finder = finder

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return None if name in EXTRAS else self.finder.find_spec(name, path, target)


def hide_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in EXTRAS]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", list(map(WithoutExtras, sys.meta_path)))


@pytest.mark.parametrize(("heading", "call", "answer"), COMMANDS, ids=[call for _, call, _ in COMMANDS])
def test_a_command_answers_with_the_sentence_of_the_page(
    heading: str, call: str, answer: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if heading == WITHOUT:
        hide_extras(monkeypatch)
    program, *arguments = shlex.split(call)
    group = cli
    if program == "gramvec-train":
        group = pytest.importorskip("gramvec_training.cli.main", reason="the training package is not installed").main
    done = CliRunner().invoke(group, arguments, prog_name=program)
    usage, error, sentence = done.stderr.rpartition("Error: ")
    assert difference(answer, f"{error}{sentence}") is None
    assert done.exit_code == (2 if usage else 1)
    assert done.stdout == ""


@pytest.mark.parametrize(("heading", "call", "answer"), CALLS, ids=[call for _, call, _ in CALLS])
def test_a_call_raises_the_error_of_the_page(
    heading: str, call: str, answer: str, here: Path, embedder: gramvec.Embedder
) -> None:
    with pytest.raises(GramvecError) as caught:
        eval(call, {"gramvec": gramvec, "model": embedder})
    assert f"gramvec.errors.{type(caught.value).__name__}: {caught.value}" == answer
