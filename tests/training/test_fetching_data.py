"""training/fetch_data.py: files of a server of this machine, compared with digests, in the trainer's layout."""

from __future__ import annotations

import gzip
import hashlib
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from gramvec.errors import InputError, ServiceError

sys.path.insert(0, str(ROOT / "training"))
fetch_data = import_module("fetch_data")
sys.path.pop(0)

DICTIONARY = b"teh->the\nmonday->Monday\nans->and, sans,\nabandonned->abandoned, abandon\n"


@pytest.fixture
def url() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            data = {"/words": b"the 2\nof 1\n", "/dictionary": DICTIONARY}.get(self.path)
            self.send_response(404 if data is None else 200)
            self.end_headers()
            self.wfile.write(data or b"")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def source(url: str, data: bytes, layout: str = "lines", file: str = "freq/words.txt.gz") -> Any:
    return fetch_data.Source(
        file=file, url=url, license="MIT", bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), layout=layout
    )


def test_lines_are_kept_and_corrections_are_pairs(url: str, tmp_path: Path) -> None:
    path = fetch_data.fetch(source(f"{url}/words", b"the 2\nof 1\n"), tmp_path)
    assert (path, gzip.decompress(path.read_bytes())) == (tmp_path / "freq/words.txt.gz", b"the 2\nof 1\n")
    path = fetch_data.fetch(source(f"{url}/dictionary", DICTIONARY, "codespell", "c.pairs.tsv.gz"), tmp_path)
    assert gzip.decompress(path.read_bytes()) == b"the\tteh\nmonday\tmonday\n"


def test_a_file_that_is_there_is_kept(url: str, tmp_path: Path) -> None:
    (tmp_path / "freq").mkdir()
    (tmp_path / "freq/words.txt.gz").write_bytes(b"mine")
    fetch_data.fetch(source(f"{url}/nowhere", b"x"), tmp_path)
    assert (tmp_path / "freq/words.txt.gz").read_bytes() == b"mine"


@pytest.mark.parametrize("data", [b"the 2\nof 2\n", b"the 2\nof", b"the 2\nof 1\n\n"])
def test_other_bytes_are_refused_and_leave_nothing(url: str, tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ServiceError, match="has other bytes than sources.toml says"):
        fetch_data.fetch(source(f"{url}/words", data), tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_fetched_or_written_is_one_sentence(url: str, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=r"nowhere: cannot be fetched \(HTTP Error 404"):
        fetch_data.fetch(source(f"{url}/nowhere", b"x"), tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        fetch_data.fetch(source(f"{url}/words", b"the 2\nof 1\n"), tmp_path / "file")


def test_the_sources_are_valid_and_on_the_page() -> None:
    sources = fetch_data.read_sources()
    page = (ROOT / "docs" / "training-data.md").read_text(encoding="utf-8")
    assert len(sources) == page.count(", fetched |")
    for one in sources:
        name = Path(one.file).name.removesuffix(".tsv.gz")
        assert f"`{name}`" in page and one.url.startswith("https://")
