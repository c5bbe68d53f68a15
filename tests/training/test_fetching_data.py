"""training/fetch_data.py and training/corpora: small files of a server of this machine, made into the trainer's."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import sys
import tarfile
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from conftest import ROOT
from gramvec.errors import InputError, ServiceError

sys.path.insert(0, str(ROOT / "training"))
fetch_data, making, recipes, writers, readers, wordfreq = (
    import_module(name)
    for name in (
        "fetch_data", "corpora.making", "corpora.recipe", "corpora.writers", "corpora.readers", "corpora.wordfreq",
    )
)  # fmt: skip
sys.path.pop(0)

COMMIT = "0" * 40
TABLE = recipes.read_table()


def tar_of(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"repository-{COMMIT}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


class Mirror:
    """A server with files of one repository; it may stop after some bytes, and notes what it is asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.stops_after: int | None = None
        self.ranges = True
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                name = self.path.removeprefix("/owner/repository/")
                mirror.asked.append((name, self.headers.get("Range")))
                data = mirror.files.get(name.removeprefix(f"{COMMIT}/"))
                begun = 0
                if data is None:
                    self.send_response(404)
                elif mirror.ranges and (found := re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))):
                    begun = int(found[1])
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {begun}-{len(data) - 1}/{len(data)}")
                else:
                    self.send_response(200)
                self.send_header("Content-Length", str(len(data or b"") - begun))
                self.end_headers()
                self.wfile.write((data or b"")[begun : mirror.stops_after])

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    mirror = Mirror()
    yield mirror
    mirror.close()


def recipe(
    reader: str, files: dict[str, bytes], text: bytes, *, file: str = "train/a.groups.tsv.gz",
    columns: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    published = [
        {"path": path, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for path, data in files.items()
    ]
    return recipes.Recipe(
        file=file, license="MIT", reader=reader, columns=columns, lines=text.count(b"\n"),
        sha256=hashlib.sha256(text).hexdigest(),
        sources=[{"repository": "owner/repository", "commit": COMMIT, "files": published}],
    )  # fmt: skip


def make(mirror: Mirror, one: Any, folder: Path) -> bytes:
    path = fetch_data.fetch(one, folder, fetch_data.Downloader(folder / ".fetching", mirror=mirror.url))
    data: bytes = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


MADE = {
    "sides": ({"a.tsv": b"one  meaning\tone &amp; sense\nalone\n\n"}, (), b"one meaning\tone & sense\n"),
    "sides of the first": ({"a.tsv": b"a b\tc d\ne f\tg h\na b\ti j\n"}, (), b""),
    "rows": ({"a.tsv": b"ill\tother\twell\nwhy not\t1\twhy is it not\n"}, ("ill", "well"), b"why not\twhy is it not\n"),
    "texts of a key": ({"a.csv": b'id,t\n7,"a, b"\n8,c\n7,d e\n'}, ("id", "t"), b"a, b\td e\n"),
    "json": ({"a.json": b'{"1": {"p": "x y", "q": "z"}}', "b.json": b'[{"p": "u"}]'}, ("p", "q"), b"x y\tz\n"),
    "dart": ({"a.json": b'[{"annotations": [{"text": "a b"}, {"text": "c"}, {"text": "A  B"}]}]'}, (), b"a b\tc\n"),
    "paraqa": (
        {"a.json": b'[{"uid": "1", "verbalized_answer": "[x] is it", "verbalized_answer_2": "it is [x]", '
         b'"verbalized_answer_3": "n/a"}]'}, (), b"x is it\tit is x\n",
    ),
    "squad": (
        {f"datasets/dev_{kind}.json": b'{"data": [{"paragraphs": [{"qas": [{"id": "1", "question": "%s"}]}]}]}' % text
         for kind, text in (("orig", b"who was it"), ("para", b"who is meant"))}, (), b"who was it\twho is meant\n",
    ),
    "onestop": ({"a.txt": b"hard\neasy words\n*****\nalone\n*****\n\nc\nd\n"}, (), b"hard\teasy words\nc\td\n"),
    "definitions": (
        {"a.yaml": b"1-n:\n  members: [cat, puss]\n  definition: [a small animal]\n2-n:\n  members: [dog]\n"}, (),
        b"cat\ta small animal\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("reader", MADE)
def test_groups_are_made_of_each_layout(mirror: Mirror, tmp_path: Path, reader: str) -> None:
    files, columns, text = MADE[reader]
    mirror.files = files
    one = recipe(reader, files, text, columns=columns)
    if reader == "sides of the first":  # the first side is the key, and no wording of its own
        text = b"c d\ti j\n"
        one = recipe(reader, files, text)
    assert make(mirror, one, tmp_path) == text


PAIRS = {
    "lexicon": ({"a.txt": b"big large huge 4x\nbig large\n3 b\n"}, b"big\tlarge\nbig\thuge\n"),
    "word pairs": ({"a.txt": b"Cat Puss\npuss cat\ncat cat\na b c\n"}, b"cat\tpuss\n"),
    "letter pairs": ({"a.txt": b"cat\tpuss\ncat\t7\n"}, b"cat\tpuss\n"),
    "codespell": ({"d.txt": b"teh->the\nmonday->Monday\nans->and, sans,\nabandonned->abandoned,\n"},
                  b"the\tteh\nabandoned\tabandonned\n"),
    "typos": ({"w.csv": b"teh,the\nans,and,sans\n"}, b"the\tteh\n"),
    "synonyms": ({"a.yaml": b"1-n:\n  members: [a, b, c]\n"}, b"a\tb\na\tc\nb\tc\n"),
}  # fmt: skip


@pytest.mark.parametrize("reader", PAIRS)
def test_pairs_are_made_of_each_layout(mirror: Mirror, tmp_path: Path, reader: str) -> None:
    files, text = PAIRS[reader]
    mirror.files = files
    assert make(mirror, recipe(reader, files, text, file="train/a.pairs.tsv.gz"), tmp_path) == text


TRANSLATED = {
    "sentences": ({"a.txt": b"Go.\tGeh.\tCC-BY\nGo.\tGeh.\tCC-BY\nGo.\tGo.\n"}, "Go.\tGeh.\n"),
    "beside the first": (
        {"en": b"a  cat\na dog\n", "de": b"eine Katze\nein Hund\n", "fr": b"un chat\nun chien\n"},
        "a cat\teine Katze\na dog\tein Hund\na cat\tun chat\na dog\tun chien\n",
    ),
    "annotations": (
        {"en.json": b'{"annotations": {"annotations": {"x": {"tts": ["fox"], "default": ["red", "fox"]}, '
         b'"y": {"tts": ["owl"], "default": ["bird"]}, "z": {"default": ["no name"]}}}}',
         "de.json": b'{"annotations": {"annotations": {"x": {"tts": ["Fuchs"], "default": ["rot"]}}}}'},
        "fox\tFuchs\nfox red\trot\n",
    ),
    "dictionary": (
        {"en-de.txt": b"# License :: open\nfeverish {adj} (in the state of having a fever) :: [old] fiebrig {m}, "
         b"febril /fe/, a, feminine plural of the other\nfez {n} SEE: hat ::\nnothing here\n"},
        "feverish\tfiebrig\nfeverish\tfebril\nfeverish\ta\n",
    ),
    "pages": (
        {"pages/common/tar.md": b"# tar\n\n> Archiving tool.\n> More: <https://x>.\n\n- pack `[i]t`:\n\n"
         b"`tar cf {{x}}`\n",
         "pages.de/common/tar.md": b"> Archivierung.\n> Mehr: <https://x>.\n\n- Erstelle es:\n",
         "pages.fr/common/tar.md": b"> Archivage.\n", "pages.fr/common/cp.md": b"> Autre.\n"},
        "Archiving tool.\tArchivierung.\npack it\tErstelle es\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("reader", TRANSLATED)
def test_translations_are_made_of_each_layout(mirror: Mirror, tmp_path: Path, reader: str) -> None:
    mirror.files, text = TRANSLATED[reader]
    one = recipe(reader, mirror.files, text.encode(), file="train/languages/translations/a.translations.tsv.gz")
    assert make(mirror, one, tmp_path).decode() == text


def test_translations_beside_a_file_of_other_length_are_refused(mirror: Mirror, tmp_path: Path) -> None:
    mirror.files = {"en": b"a\nb\n", "de": b"c\n"}
    one = recipe("beside the first", mirror.files, b"", file="train/languages/translations/a.translations.tsv.gz")
    with pytest.raises(ServiceError, match="shorter"):
        make(mirror, one, tmp_path)


def test_what_is_withheld_is_the_lines_as_they_are(mirror: Mirror, tmp_path: Path) -> None:
    mirror.files = {"a": b"one \ntwo\n", "b": b"eins\n"}
    one = recipe("texts", mirror.files, b"one \ntwo\neins\n", file="train/languages/withheld.txt.gz")
    assert make(mirror, one, tmp_path) == b"one \ntwo\neins\n"


def test_lines_scores_turns_and_paragraphs_are_made(mirror: Mirror, tmp_path: Path) -> None:
    words = b"the 2\nof 1"
    scored = b"\tno\tscore\n4.400\ta b \tc\textra\n"
    turns = b'[{"utterances": [{"text": "how are you, then?"}, {"text": "fine"}, {}]}, {"turns": [{"utterance": "x"}]}]'
    named = b"id\tleft\tright\tgrade\n7\ta b \tc\x12d\t3.50\tend\n"
    asked = b'{"data": [{"paragraphs": [{"context": "one\\n two", "qas": [{"id": "q", "question": "how  many?"}]}]}]}'
    intents = b"# id = 1\n# text: wake  me\n# intent = alarm\n1\twake\n\n# id = 2\n# text = none\n"
    book = b'<d xmlns="u"><para>one two <b>three</b> four  five six</para><para>too short</para></d>'
    mirror.files = {
        "words": words, "scored": scored, "named": named, "turns": turns, "book": book, "asked": asked,
        "intents": intents,
    }  # fmt: skip
    cases = (
        ("lines", "words", (), words, "train/freq/w.txt.gz"),
        ("similarity", "scored", (), b"4.4\ta b\tc\n", "dev/s/s.tsv"),
        ("similarity", "named", ("grade", "left", "right"), b"3.5\ta b\tc d\n", "dev/s/n.tsv"),
        ("dialogs", "turns", (), b"how are you, then?\n", "train/raw/d.txt.gz"),
        ("openstax", "book", (), b"one two three four five six\n", "train/raw/o.txt.gz"),
        ("paragraphs", "asked", ("documents",), b"p0\tone two\n", "dev/x/corpus.tsv"),
        ("paragraphs", "asked", ("queries",), b"q\thow many?\n", "dev/x/queries.tsv"),
        ("paragraphs", "asked", ("judgments",), b"q\tp0\t1\n", "dev/x/qrels.tsv"),
        ("intents", "intents", (), b"alarm\twake me\n", "dev/x/train.tsv"),
    )
    for reader, name, columns, text, file in cases:
        one = recipe(reader, {name: mirror.files[name]}, text, file=file, columns=columns)
        assert make(mirror, one, tmp_path) == text


def test_lines_of_two_files_stand_side_by_side(mirror: Mirror, tmp_path: Path) -> None:
    mirror.files = {"a.de": "Hallo \nTschüs\n".encode(), "a.en": b"hello\nbye\n"}
    one = recipe("side by side", mirror.files, "Hallo\thello\nTschüs\tbye\n".encode(), file="dev/t/de.tsv")
    assert make(mirror, one, tmp_path).decode() == "Hallo\thello\nTschüs\tbye\n"
    mirror.files = {"b.de": b"Hallo\n", "b.en": b"hello\nbye\n"}
    with pytest.raises(ServiceError, match="longer"):
        make(mirror, recipe("side by side", mirror.files, b"", file="dev/t/other.tsv"), tmp_path)


def test_a_series_is_a_recipe_for_each_of_its_sets() -> None:
    one = next(one for one in TABLE.recipes if one.file == "dev/multilingual/tatoeba/deu.tsv")
    paths = [file.path for file in one.sources[0].files]
    assert paths == ["data/tatoeba/v1/tatoeba.deu-eng.deu", "data/tatoeba/v1/tatoeba.deu-eng.eng"]
    config = tomllib.loads((ROOT / "training/configs/gramvec-multi.toml").read_text(encoding="utf-8"))
    folder = f"train/{config['concepts']['folder']}"
    wanted = {f"{folder}/wn-wikt-{code}.tab" for code in config["words"]["languages"].values()}
    assert {one.file for one in TABLE.recipes if one.file.startswith(folder)} == wanted


@pytest.mark.parametrize(("name", "count"), [("dev/multilingual/tatoeba", 10), ("xquad/de/corpus", 1),
    ("multilingual", 45), ("wordnets", 0), ("languages/wordnets", 42), ("sts1", 0)])  # fmt: skip
def test_a_name_is_the_end_of_a_path_or_a_folder_around_it(name: str, count: int) -> None:
    if count:
        assert len(TABLE.select([name]).recipes) == count
    else:
        with pytest.raises(ValueError, match="there is no"):
            TABLE.select([name])


def test_sentences_with_one_translation_are_a_group(mirror: Mirror, tmp_path: Path) -> None:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("_about.txt", "not\tthis\n")
        archive.writestr("fra.txt", "Go.\tVa !\tCC-BY\nWalk.\tva\n")
    mirror.files = {"f.zip": zipped.getvalue(), "t.txt": b"Run.\tva\n"}
    one = recipe("same translation", mirror.files, b"Go.\tWalk.\n", columns=("fra", "tur"))
    assert make(mirror, one, tmp_path) == b"Go.\tWalk.\n"
    one = recipe("english", mirror.files, b"Go.\nRun.\nWalk.\n", file="train/raw/e.txt.gz")
    assert make(mirror, one, tmp_path) == b"Go.\nRun.\nWalk.\n"


def test_verses_of_an_archive_are_joined_with_those_of_a_file(mirror: Mirror, tmp_path: Path) -> None:
    chapters = {
        "Data/Bibles/KJV/1Kings/1Kings1.txt": b"1 In the beginning was it\n",
        "Data/Bibles/YLT/1Kings/1Kings1.txt": b"In the beginning it was\n",
        "Data/Bibles/LEB/1Kings/1Kings1.txt": b"In the beginning it is\n",
        "Data/Bibles/ASV/1Kings/1Kings1.txt": b"quite another verse here\n",
    }
    modern = b"### I Kings\n[1:1] In the beginning, it was so\n"
    mirror.files = {f"tar.gz/{COMMIT}": tar_of({**chapters, "other": b"x"}), "BSB.txt": modern}
    text = b"In the beginning, it was so\tIn the beginning was it\tIn the beginning it was\n"
    one = recipe("bible", {"BSB.txt": modern}, text)
    archive = {
        "members": "Data/Bibles/.*",
        "bytes": sum(map(len, chapters.values())),
        "sha256": making.digest_members(list(chapters.items())),
    }
    first = recipes.Source(repository="owner/repository", commit=COMMIT, archive=archive)
    assert make(mirror, one.model_copy(update={"sources": (first, *one.sources)}), tmp_path) == text

    other = first.model_copy(update={"archive": first.archive.model_copy(update={"bytes": 5})})
    with pytest.raises(ServiceError, match="its files have more than 5 bytes"):
        make(mirror, one.model_copy(update={"sources": (other,)}), tmp_path / "other")


def test_frequencies_are_decoded_and_what_is_none_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    packed = gzip.compress(b"\x93\x81\xa6format\xa2cB\x91\xa3the\xdc\x00\x02\xd9\x02of\xa1a", mtime=0)
    mirror.files = {"f.gz": packed}
    one = recipe("wordfreq", mirror.files, b"the\t0\nof\t-1\na\t-1\n", file="train/freq/f.tsv.gz")
    assert make(mirror, one, tmp_path) == b"the\t0\nof\t-1\na\t-1\n"
    for bad in (b"", b"\xc0", b"\x91", b"\x91\xa9abc", b"\x91" * 99, b"\xdd\xff\xff\xff\xff"):
        with pytest.raises(ValueError, match=r"MessagePack|ends within a text"):
            wordfreq._decode(bad, 0)


@given(st.binary(max_size=60))
def test_hostile_files_are_refused_or_read(data: bytes) -> None:
    file = recipes.AuthorsFile("a.tsv", data)
    for name, reader in making.READERS.items():
        columns = ("a", "b") if name in ("rows", "texts of a key", "json") else ("fra",)
        try:
            records = list(reader([file], columns))
        except (ValueError, KeyError, TypeError, SyntaxError, OSError, EOFError, AttributeError, IndexError):
            continue
        except Exception as error:  # of zipfile and yaml
            assert type(error).__module__.split(".")[0] in ("yaml", "zipfile", "_csv", "csv", "zlib"), name
            continue
        assert isinstance(records, list)


@given(st.lists(st.lists(st.text(max_size=12), max_size=4), max_size=6))
def test_written_groups_are_clean_and_differ(records: list[list[str]]) -> None:
    lines = list(writers.write_groups(records, at_most=3))
    assert len(set(lines)) == len(lines)
    for line in lines:
        wordings = line.split("\t")
        assert 2 <= len(wordings) <= 3 and "\n" not in line
        assert len({writers.reduce_text(one) for one in wordings}) == len(wordings)


def test_texts_that_models_are_scored_on_are_left_out() -> None:
    scored = writers.digest_of(writers.reduce_text("A text that is scored."))
    groups = [["a text, that is SCORED", "one", "other"], ["a text that is scored", "alone"]]
    assert list(writers.write_groups(groups, withheld={scored})) == ["one\tother"]
    short = writers.digest_of("three words only")
    assert list(writers.write_groups([["three words only", "b"]], withheld={short})) == ["three words only\tb"]


def test_a_file_that_is_there_is_kept(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/a.groups.tsv.gz").write_bytes(b"mine")
    one = recipe("sides", {"nowhere": b"x"}, b"")
    path = fetch_data.fetch(one, tmp_path, fetch_data.Downloader(tmp_path / ".fetching", mirror=mirror.url))
    assert path.read_bytes() == b"mine" and not mirror.asked


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_goes_on_where_it_stopped(mirror: Mirror, tmp_path: Path, ranges: bool) -> None:
    data = b"".join(b"left %d\tright %d\n" % (i, i) for i in range(20_000))
    mirror.files, mirror.stops_after, mirror.ranges = {"first": b"a\tb\n", "big": data}, 100_000, ranges
    one = recipe("sides", mirror.files, b"a\tb\n" + data)
    with pytest.raises(ServiceError, match=r"has other bytes|cannot be fetched"):
        make(mirror, one, tmp_path)
    part = next((tmp_path / ".fetching").rglob("*.part"), None)
    mirror.stops_after, mirror.asked = None, []
    assert make(mirror, one, tmp_path) == b"a\tb\n" + data
    names = [name for name, _ in mirror.asked]
    assert names == [f"{COMMIT}/big"]
    if part is not None:
        assert mirror.asked[0][1] == "bytes=100000-"


def test_other_bytes_are_refused_and_leave_nothing(mirror: Mirror, tmp_path: Path) -> None:
    one = recipe("sides", {"a": b"a\tb\n"}, b"a\tb\n")
    for data in (b"a\tc\n", b"a\tb", b"a\tb\n\n"):
        mirror.files = {"a": data}
        with pytest.raises(ServiceError, match=r"recipes\.toml says|cannot be fetched"):
            make(mirror, one, tmp_path)
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".part"]
    mirror.files = {"a": b"a\tb\n"}
    with pytest.raises(ServiceError, match="was made with other bytes"):
        make(mirror, one.model_copy(update={"sha256": "1" * 64}), tmp_path)
    assert not (tmp_path / one.file).exists()


def test_what_cannot_be_fetched_or_written_is_one_sentence(mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=r"nowhere: cannot be fetched \(404"):
        make(mirror, recipe("sides", {"nowhere": b"x"}, b""), tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        make(mirror, recipe("sides", {"a": b"a\tb\n"}, b""), tmp_path / "file")


def test_without_a_network_there_is_one_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(fetch_data.main, [str(tmp_path), "--mirror", "http://127.0.0.1:9"])
    assert result.exit_code == 1 and result.stdout == ""
    said = result.stderr.strip().splitlines()
    assert "cannot be fetched" in said[-1] and "bring a folder" in said[-1]
    assert sum("cannot be fetched" in line for line in said) == 1


def test_the_command_says_what_is_missing_and_why(mirror: Mirror, tmp_path: Path) -> None:
    only = ["--only", "squad_para", "--only", "dev/sts16", "--only", "more_news", "--mirror", mirror.url]
    result = CliRunner().invoke(fetch_data.main, [str(tmp_path), *only])
    assert result.exit_code == 1 and "squad_para: missing; http://127.0.0.1" in result.stderr
    assert "train/raw/more_news.txt.gz: not fetched, because" in result.stderr and "more_masc" not in result.stderr
    result = CliRunner().invoke(fetch_data.main, [str(tmp_path), "--only", "nothing"])
    assert result.exit_code == 2 and "there is no 'nothing'" in result.stderr


def test_the_table_is_whole_and_on_the_page() -> None:
    page = (ROOT / "docs" / "training-data.md").read_text(encoding="utf-8")
    files = [one.file for one in TABLE.recipes]
    assert len(set(files)) == len(files) and {one.reader for one in TABLE.recipes} <= {*making.READERS, "lines"}
    for one in TABLE.recipes:
        name = Path(one.file).name.removesuffix(".tsv.gz").removesuffix(".tsv").removesuffix(".txt.gz")
        alike = one.file.startswith("dev/") or ("`languages/wordnets`" in page and "/wordnets/" in one.file)
        assert f"`{name}" in page or alike, name
        assert all((source.archive is None) == bool(source.files) for source in one.sources)
    for config in (ROOT / "training" / "configs").rglob("*.toml"):
        for file in re.findall(r'^(?:path|frequencies) = "([^"]+)"', config.read_text(encoding="utf-8"), re.MULTILINE):
            known = [*files, *(file for missing in TABLE.missing for file in missing.files)]
            assert f"train/{file}" in known or file.startswith("../"), (config.name, file)


@pytest.mark.skipif("GRAMVEC_DATA" not in os.environ, reason="GRAMVEC_DATA is not set")
def test_the_digests_are_those_of_the_data() -> None:
    for one in TABLE.recipes:
        path = Path(os.environ["GRAMVEC_DATA"]) / one.file
        if path.is_file():
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
            assert (hashlib.sha256(text).hexdigest(), text.count(b"\n")) == (one.sha256, one.lines), one.file
