"""What changes an index leaves whole: statistics, snapshots that are open, copies, and what a kill leaves."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from conftest import MODELS
from gramvec.errors import InputError
from gramvec.jobs.search import changes, rows, writer
from gramvec.jobs.search import snapshot as snapshot_module
from gramvec.jobs.search.folder import read_manifest
from gramvec.jobs.search.rows import RemovedLog, RowSet, read_removed
from support.bulk import gramvec_command
from support.errors import refused

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

ROWS = [{"key": f"r{at}", "text": f"parcel {at * 7919 % 997} to customer {at}"} for at in range(600)]


@pytest.fixture(autouse=True)
def one_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a build write one segment: two threads divide documents by chance, and one with none left is dropped."""
    monkeypatch.setattr(writer, "WRITER_THREADS", 1)


@pytest.fixture
def path(tmp_path: Path, small: gramvec.Embedder) -> Path:
    gramvec.Index.build(tmp_path / "x.index", ROWS, model=small, id="key")
    return tmp_path / "x.index"


def letters_of(path: Path) -> Path:
    return path / read_manifest(path).generation / "letters"


def files(folder: Path) -> dict[str, str]:
    return {
        str(one.relative_to(folder)): hashlib.sha256(one.read_bytes()).hexdigest()
        for one in sorted(folder.rglob("*"))
        if one.is_file() and one.name != "checked.json"
    }


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("merged", [False, True])
def test_removed_documents_turn_no_score_round(
    path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch, share: float, merged: bool
) -> None:
    """Tantivy counts a removed document in how rare an n-gram is until it is merged away."""
    monkeypatch.setattr(changes, "MIN_REMOVED", 1 if merged else 10_000)
    index = gramvec.Index(path, model=small)
    index.remove([f"r{at}" for at in range(int(share * len(ROWS)))])
    index.add([ROWS[-1] | {"text": "parcel 123456 to customer 599"}], replace=True)
    snapshot = index.snapshot()
    removed = 0 if merged and share > 0.5 else int(share * len(ROWS))
    assert snapshot.counted - snapshot.documents == removed + 1  # the document that was replaced
    left = ROWS[int(share * len(ROWS)) : -1]
    for row in left[:: len(left) // 20]:
        for only in (None, "letters"):
            hits = index.search(row["text"], 5, only=only)[0]  # type: ignore[arg-type]
            assert hits[0].id == row["key"]
        assert all(0 < hit.score < 2.2 for hit in hits)


def test_a_segment_without_documents_counts_no_more(path: Path, small: gramvec.Embedder) -> None:
    """So less was removed than is left, and the index is not written anew."""
    index = gramvec.Index(path, model=small)
    index.add([{"key": f"more{at}", "text": f"more {at}"} for at in range(50)])
    before = read_manifest(path)
    index.remove([row["key"] for row in ROWS] + ["more0"])
    snapshot = index.snapshot()
    assert (snapshot.counted, snapshot.documents) == (50, 49)
    assert read_manifest(path).generation == before.generation
    assert index.search("more 7", 1)[0][0].id == "more7"


def test_an_index_of_which_much_was_removed_is_written_anew(path: Path, small: gramvec.Embedder) -> None:
    index = gramvec.Index(path, model=small)
    before = read_manifest(path)
    opened = gramvec.Index(path, model=small)
    former = opened.search("parcel to customer 7", 9)
    index.remove([f"r{at}" for at in range(400)])
    after = read_manifest(path)
    assert (after.generation != before.generation, after.next, len(index)) == (True, 200, 200)
    assert sorted(one.name for one in path.iterdir()) == sorted([".lock", "manifest.json", after.generation])
    for row in ROWS[400::20]:
        hit = index.search(row["text"], 1)[0][0]
        assert (hit.id, hit.record) == (row["key"], row)
    assert opened.search("parcel to customer 7", 9) == former
    assert index.add([{"key": "new", "text": "other"}]) == 201
    assert index.search("other", 1)[0][0].id == "new"


def test_counted_ids_go_on_in_an_index_that_was_written_anew(
    tmp_path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MIN_REMOVED", 1)
    index = gramvec.Index.build(tmp_path / "x", ["one", "two", "three"], model=small)
    index.remove(["3", "2"])
    index.add(["four"])
    assert [hit.id for hit in index.search("four", 1)[0]] == ["4"]


@pytest.mark.parametrize("signs", [False, True])
def test_an_open_index_stays_as_it_was_opened(
    path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch, signs: bool
) -> None:
    if signs:
        monkeypatch.setattr(snapshot_module, "COMPARED_ROWS", 10)
    opened = gramvec.Index(path, model=small)
    queries = [row["text"] for row in ROWS[::40]]
    former = {only: opened.search(queries, 5, only=only) for only in (None, "letters", "meaning")}  # type: ignore[arg-type]
    index = gramvec.Index(path, model=small)
    index.remove([row["key"] for row in ROWS[::40]][1:])
    index.add([ROWS[0] | {"text": "something else"}], replace=True)
    for only, expected in former.items():
        assert opened.search(queries, 5, only=only) == expected  # type: ignore[arg-type]
        there = {hit.id for hits in index.search(queries, 5, only=only) for hit in hits}  # type: ignore[arg-type]
        assert there and not there & {row["key"] for row in ROWS[40::40]}
        assert all(len(hits) == 5 for hits in index.search(queries, 5, only=only))  # type: ignore[arg-type]


def test_a_copy_by_hard_links_is_not_changed(path: Path, small: gramvec.Embedder, tmp_path: Path) -> None:
    copy = tmp_path / "copy.index"
    index = gramvec.Index(path, model=small)
    index.remove(["r1"])
    subprocess.run(["cp", "-al", path, copy], check=True)
    before = files(copy)
    index.remove(["r2", "r3"])
    index.add([{"key": "more", "text": "one more"}])
    assert files(copy) == before
    copied = gramvec.Index(copy, model=small)
    assert [hit.id for hit in copied.search(ROWS[2]["text"], 1)[0]] == ["r2"]
    copied.add([{"key": "other", "text": "another one"}])
    for one, key, text in ((index, "more", "one more"), (copied, "other", "another one")):
        one.reload()
        assert one.search(text, 1)[0][0].id == key
        assert one.search(text, 1, only="meaning")[0][0].id == key


def test_files_that_no_commit_names_are_not_read_and_the_next_writer_deletes_them(
    path: Path, small: gramvec.Embedder
) -> None:
    letters = letters_of(path)
    segment = next(letters.glob("*.term")).name.split(".")[0]
    left = [f"{segment}.777.del", f"{'0' * 32}.store", f"{'0' * 32}.term", ".tmpAb12"]
    for name in left:
        (letters / name).write_bytes(b"half")
    (letters / "mine.txt").write_text("precious")
    assert gramvec.Index(path, model=small).search("parcel 7", 1)[0]
    assert gramvec_command("index", "info", path).returncode == 0
    gramvec.Index(path, model=small).add([{"key": "new", "text": "x"}])
    assert not set(left) & {one.name for one in letters.iterdir()}
    assert (letters / "mine.txt").read_text() == "precious"


KILLED = """
import os, sys, gramvec
from pathlib import Path
from gramvec.jobs.search import writer
commit, wait = writer.IndexWriter.commit, writer.IndexWriter.close
def killed(self):
    {before}
    commit(self)
    os.kill(os.getpid(), 9)
writer.IndexWriter.commit = killed
index = gramvec.Index(sys.argv[1], model={model!r})
{change}
"""
CHANGES = {
    "remove": "index.remove(['r0', 'r1', 'r2'])",
    "replace": "index.add([{'key': 'r0', 'text': 'new'}], replace=True)",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["before", "half", "after"])
def test_a_kill_around_a_commit_leaves_no_ghost(path: Path, small: gramvec.Embedder, change: str, when: str) -> None:
    """Vectors of rows without documents must take no place among the nearest."""
    before = {
        "before": "os.kill(os.getpid(), 9)",
        "half": "self._vectors.flush(); self._log.save([*self._removed, *self._lost]); os.kill(os.getpid(), 9)",
        "after": "pass",
    }[when]
    code = KILLED.format(before=before, change=CHANGES[change], model=str(MODELS / "paragram-phrase"))
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr.decode()
    for _ in range(2):
        index = gramvec.Index(path, model=small)
        for row in ROWS[:3]:
            for only in ("meaning", "letters", None):
                assert len(index.search(row["text"], 50, only=only)[0]) == 50  # type: ignore[arg-type]
        found = {hit.id for hit in index.search(ROWS[0]["text"], 20, only="meaning")[0]}
        assert ("r0" in found) == (when != "after")
        index.add([{"key": "later", "text": ROWS[0]["text"]}])
        index.remove("later")


def test_opening_is_tried_again_while_another_process_writes(
    path: Path, small: gramvec.Embedder, tmp_path: Path
) -> None:
    failed: list[str] = []
    done = threading.Event()

    def open_all_the_time() -> None:
        while not done.is_set():
            try:
                assert gramvec.Index(path, model=small).search("parcel 7", 1, only="letters")[0]
            except Exception as error:
                failed.append(str(error))

    readers = [threading.Thread(target=open_all_the_time) for _ in range(2)]
    for one in readers:
        one.start()
    for turn in range(6):
        if turn % 2:
            gramvec.Index.build(path, ROWS[:50], model=small, id="key")
        else:
            gramvec.Index(path, model=small).add(ROWS[:20], replace=True)
    done.set()
    for one in readers:
        one.join()
    assert failed == []


def test_an_index_that_changed_while_it_was_opened_is_opened_again(
    path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, turns = snapshot_module.check_letters, []

    def changed(*given: object) -> object:
        found = check(*given)  # type: ignore[arg-type]
        if not turns:
            turns.append(1)
            gramvec.Index.build(path, ROWS[:9], model=small, id="key")
        return found

    monkeypatch.setattr(snapshot_module, "check_letters", changed)
    assert len(gramvec.Index(path, model=small)) == 9


MINE: dict[str, Callable[[Path, Path], object]] = {
    "a model": lambda folder, index: shutil.copytree(MODELS / "sif", folder),
    "a page": lambda folder, index: (
        folder.mkdir(),
        (folder / "manifest.json").write_text('{"name": "my app", "icons": []}'),
        (folder / "index.html").write_text("x"),
    ),
    "a lone manifest": lambda folder, index: (folder.mkdir(), (folder / "manifest.json").write_text('{"name": "x"}')),
    "a lone journal": lambda folder, index: (folder.mkdir(), (folder / "building.json").write_text('{"name": "x"}')),
    "a cache": lambda folder, index: [
        ((folder / name).mkdir(parents=True), (folder / name / "precious").write_text("x"))
        for name in ("0123456789abcdef", "fedcba9876543210")
    ],
    "an empty cache": lambda folder, index: (folder / "0123456789abcdef").mkdir(parents=True),
    "an index with more": lambda folder, index: (
        shutil.copytree(index, folder),
        (folder / "notes.txt").write_text("x"),
    ),
    "an index with more inside": lambda folder, index: (
        shutil.copytree(index, folder),
        (folder / read_manifest(index).generation / "notes.txt").write_text("x"),
    ),
    "a newer index": lambda folder, index: (
        shutil.copytree(index, folder),
        (folder / "manifest.json").write_text(
            (folder / "manifest.json").read_text().replace('"format": 4', '"format": 5')
        ),
    ),
    "an older index": lambda folder, index: (
        shutil.copytree(index, folder),
        (folder / "manifest.json").write_text(
            (folder / "manifest.json").read_text().replace('"format": 4', '"format": 3')
        ),
    ),
    "a link": lambda folder, index: folder.symlink_to(index),
    "a file": lambda folder, index: folder.write_text("x"),
}


@pytest.mark.parametrize("what", MINE)
def test_an_output_that_is_something_else_stays(path: Path, small: gramvec.Embedder, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "mine"
    MINE[what](folder, path)
    before, kept = files(folder), files(path)
    for rows_, said in ((ROWS[:5], "another `output`"), ([{"nothing": "x"}], "has no 'text'")):
        with pytest.raises(InputError, match=said):
            gramvec.Index.build(folder, rows_, model=small)
        assert files(folder) == before
        assert files(path) == kept


def test_an_index_of_another_version_is_one_sentence(path: Path, small: gramvec.Embedder) -> None:
    manifest = path / "manifest.json"
    text = manifest.read_text()
    for number, said in (
        (3, "an older version .*gramvec index rebuild"),
        (2, "an older version"),
        (5, "a newer version"),
    ):
        manifest.write_text(text.replace('"format": 4', f'"format": {number}'))
        for call in (
            lambda: gramvec.Index(path, model=small),
            lambda: changes.add_to_index(small, path, path / "none.txt"),
            lambda: changes.remove_from_index(path, ["r1"]),
        ):
            with pytest.raises(InputError, match=said) as caught:
                call()
            assert "\n" not in str(caught.value)


def test_an_index_is_rebuilt_from_its_records(path: Path, small: gramvec.Embedder, embedder: gramvec.Embedder) -> None:
    index = gramvec.Index(path, model=small)
    index.remove(["r3"])
    index.add([{"key": "r4", "text": "bananas", "more": [1, {"a": None}]}], replace=True)
    before = {hit.id: hit.record for hit in index.search("parcel bananas to", 700)[0]}
    done = gramvec_command("index", "rebuild", path)
    assert done.returncode == 0, done.stderr
    assert b"599 rows in" in done.stderr
    index.reload()
    assert {hit.id: hit.record for hit in index.search("parcel bananas to", 700)[0]} == before
    assert len(before) == len(index) == 599
    assert changes.rebuild_index(embedder, path) == 599
    other = gramvec.Index(path, model=embedder)
    assert other.manifest.model == embedder.name
    assert other.search("bananas", 1)[0][0].id == "r4"


def test_a_rebuild_that_fails_changes_nothing(
    path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(path)

    def full(self: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer.IndexWriter, "commit", full)
    with refused(gramvec.GramvecError, "No space left", "nothing"):
        changes.rebuild_index(small, path)
    assert {name: one for name, one in files(path).items() if name in before} == before
    assert len(gramvec.Index(path, model=small)) == 600


@given(
    entries=st.lists(st.lists(st.integers(0, 299), min_size=1, max_size=9), max_size=6),
    lost=st.integers(0, 2), cut=st.integers(0, 40),
)  # fmt: skip
def test_the_log_of_removed_rows_ends_with_the_commit(
    entries: list[list[int]], lost: int, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("log") / "removed.bin"
    seen: set[int] = set()
    entries = [[row for row in dict.fromkeys(one) if not (row in seen or seen.add(row))] for one in entries]  # type: ignore[func-returns-value]
    entries = [one for one in entries if one]
    log = RemovedLog(path, 0)
    sizes = [0]
    for one in entries:
        log.save(one)
        sizes.append(path.stat().st_size)
    log.close()
    kept = max(len(entries) - lost, 0)
    there = {row for one in entries[kept:] for row in one}
    found = read_removed(path, 300, there.__contains__)
    assert (found.rows.tolist(), found.size) == ([row for one in entries[:kept] for row in one], sizes[kept])
    os.truncate(path, max(sizes[kept], sizes[-1] - cut))
    assert read_removed(path, 300, there.__contains__).size == sizes[kept]
    again = RemovedLog(path, found.size)
    again.save([299])
    again.close()
    assert read_removed(path, 300, lambda row: False).rows.tolist()[-1:] == [299]


def test_a_log_that_is_none_is_refused_or_names_nothing(tmp_path: Path) -> None:
    path = tmp_path / "removed.bin"
    assert read_removed(path, 9, bool).size == 0
    path.write_bytes(np.array([2, 5, 6, 7], "<u4").tobytes())
    assert read_removed(path, 9, bool).size == 0
    path.write_bytes(bytes(rows.FEWEST_BYTES * 9 + 1))
    with pytest.raises(InputError, match="too large"):
        read_removed(path, 9, bool)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file"):
        read_removed(path, 9, bool)


@given(st.lists(st.booleans(), max_size=300))
def test_rows_are_bits(flags: list[bool]) -> None:
    found = RowSet.of(np.array(flags, np.bool_))
    assert found.rows().tolist() == [at for at, one in enumerate(flags) if one]
    assert (found.size, len(found.bits)) == (sum(flags), -(-len(flags) // 64))
    assert found.flags(len(flags)).tolist() == flags


def test_a_folder_that_can_only_be_read_needs_no_usual_temporary_folder(
    path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from gramvec.jobs.search import segments

    monkeypatch.setattr(segments.os, "access", lambda *_: False)
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._get_default_tempdir", lambda *_: (_ for _ in ()).throw(FileNotFoundError(2, "none")))
    monkeypatch.setattr(segments, "SHARED_MEMORY", str(tmp_path))
    assert len(gramvec.Index(path, model=small)) == 600
    monkeypatch.setattr(segments, "SHARED_MEMORY", str(tmp_path / "none"))
    with refused(InputError, "read-only", "temporary folder"):
        gramvec.Index(path, model=small)


def test_journals_of_builds_are_checked(path: Path, small: gramvec.Embedder, tmp_path: Path) -> None:
    from gramvec.jobs.search import build

    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    made = tmp_path / "new.index"
    commit = writer.IndexWriter.commit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "CHECKPOINT_SECONDS", 0)
        turns: list[int] = []

        def stopped(self: writer.IndexWriter) -> None:
            commit(self)
            turns.append(1)
            if len(turns) > 1:
                raise KeyboardInterrupt

        patch.setattr(writer.IndexWriter, "commit", stopped)
        with pytest.raises(gramvec.GramvecError):
            build.build_index(small, source, made, id_column="key")
    journal = json.loads((made / "building.json").read_text())
    kept = json.dumps(journal)
    last = journal["checkpoints"][-1]
    for changed in (
        {"manifest": journal["manifest"] | {"dimensions": 7}},
        {"manifest": journal["manifest"] | {"column": "other"}},
        {"checkpoints": [last | {"bad": {"count": "x", "reasons": [], "ranges": [], "unnamed": 0}}]},
        {"checkpoints": [last | {"bad": last["bad"] | {"more": 1}}]},
        {"checkpoints": [last | {"rows": 2**40}]},
        {"checkpoints": [last] * 3},
        {"more": 1},
    ):
        (made / "building.json").write_text(json.dumps(journal | changed))
        with pytest.raises(InputError, match=r"building\.json.*damaged"):
            build.build_index(small, source, made, id_column="key", resume=True)
    (made / "building.json").write_text(kept)
    build.build_index(small, source, made, id_column="key", resume=True)
    assert len(gramvec.Index(made, model=small)) == 600
