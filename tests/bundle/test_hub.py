"""gramvec save, push and pull: by the real huggingface_hub, against a stand-in of the hub on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import gramvec
from conftest import MODELS
from gramvec.bundle.bundle import open_bundle
from gramvec.errors import InputError
from gramvec.hub import pull
from support.errors import assert_names, refused
from support.http import PATIENCE, kept_port
from support.hub import READER, WRITER, StandIn
from support.static import write_model2vec

pytestmark = pytest.mark.slow

pytest.importorskip("huggingface_hub", reason="needs the extra `hub`")

SIF = MODELS / "sif"
NAME = "org/sif"


@pytest.fixture
def hub() -> Iterator[StandIn]:
    with StandIn() as standin:
        yield standin


class Shell:
    def __init__(self, folder: Path, hub: StandIn | None, token: str | None, **more: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        kept = {name: value for name, value in kept.items() if not name.lower().endswith("_proxy")}
        self.folder = folder
        # git-lfs's way of large files: the other, xet, speaks of chunks with a store of its own.
        quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1"}
        self.environment = {**kept, **quiet, "HF_HOME": str(folder / "home"), **more}
        if hub is not None:
            self.environment["HF_ENDPOINT"] = hub.url
        if token is not None:
            self.environment["HF_TOKEN"] = token

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("gramvec")), *map(str, arguments)]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=PATIENCE
        )

    def done(self, *arguments: str | Path) -> list[str]:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    def refused(self, *arguments: str | Path) -> str:
        done = self.run(*arguments)
        assert done.returncode == 1, (done.stdout, done.stderr)
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr.removeprefix("Error: ").rstrip()


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def shell(tmp_path: Path, hub: StandIn) -> Shell:
    return Shell(tmp_path, hub, WRITER)


def test_what_is_pushed_is_pulled_to_the_byte(shell: Shell, hub: StandIn, tmp_path: Path) -> None:
    digest = open_bundle(SIF).digest
    repository, told, commit = shell.done("push", SIF, NAME)
    assert (repository, told) == (NAME, digest)
    assert len(hub.objects) == 3  # the large ones went by themselves
    name, told, folder = shell.done("pull", NAME)
    assert (name, told, folder) == ("sif", digest, "models/sif")
    assert files_of(tmp_path / "models" / "sif") == files_of(SIF)
    assert not list((tmp_path / "models").glob(".*"))
    shell.done("pull", f"{NAME}@{commit}", "by-commit", "--digest", digest[:12])
    assert files_of(tmp_path / "by-commit") == files_of(SIF)
    assert gramvec.load(tmp_path / "by-commit", device="cpu").digest == digest


def test_the_card_has_the_metadata_of_the_hub(shell: Shell, hub: StandIn) -> None:
    shell.done("push", SIF, NAME, "--private")
    _, files = hub.repositories[NAME][-1]
    assert hub.private == {NAME}
    empty, head, card = files["README.md"].decode().split("---\n", 2)
    found = yaml.safe_load(head)
    assert empty == ""
    assert (found["license"], found["library_name"], found["pipeline_tag"]) == (
        "apache-2.0", "gramvec", "sentence-similarity",
    )  # fmt: skip
    assert found["tags"] == ["gramvec", "sentence-embeddings", "sif"]
    assert card == "\n" + (SIF / "README.md").read_text()
    assert files.keys() == files_of(SIF).keys()


def test_tags_of_the_card_name_the_features_of_the_model(shell: Shell, hub: StandIn, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install '.[static]'")
    shell.done("import", write_model2vec(tmp_path / "m"), "-o", "static")
    ngrams = MODELS / "charagram-phrase"
    for model, last in (("static", ["static"]), (ngrams, ["character-ngrams", ngrams.name])):
        shell.done("push", model, "org/model")
        _, head, _ = hub.repositories["org/model"][-1][1]["README.md"].decode().split("---\n", 2)
        assert yaml.safe_load(head)["tags"] == ["gramvec", "sentence-embeddings", *last]
    *_, commit = shell.done("push", "static", "org/model")
    shell.done("pull", f"org/model@{commit}", "pulled")
    assert files_of(tmp_path / "pulled") == files_of(tmp_path / "static")
    assert shell.run("verify", "pulled").stdout.rstrip().endswith("ok")


def test_a_second_push_is_another_commit_and_a_pull_replaces_where_it_is_told(shell: Shell, tmp_path: Path) -> None:
    *_, first = shell.done("push", SIF, NAME)
    *_, second = shell.done("push", MODELS / "paragram-phrase", NAME)
    assert first != second
    shell.done("pull", f"{NAME}@{first}", "here")
    assert_names(shell.refused("pull", NAME, "here"), "holds a model", "--overwrite")
    assert shell.done("pull", NAME, "here", "--overwrite")[0] == "paragram-phrase"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("mine")
    assert_names(shell.refused("pull", NAME, "full", "--overwrite"), "full", "another folder")
    assert (tmp_path / "full" / "letter").read_text() == "mine"
    assert "is a file" in shell.refused("pull", NAME, "full/letter")


def test_another_bundle_than_the_one_that_is_wanted_is_not_downloaded(shell: Shell, hub: StandIn) -> None:
    shell.done("push", SIF, NAME)
    assert_names(shell.refused("pull", NAME, "--digest", "0123456789ab"), "0123456789ab", "revision")
    assert hub.downloaded == ["manifest.json"]
    assert "first 12 to 64" in shell.refused("pull", NAME, "--digest", "0123")


@pytest.mark.parametrize(
    ("name", "change", "word"),
    [
        ("vocabulary.safetensors", lambda data: data[:-1] + bytes([data[-1] ^ 1]), "SHA-256"),
        ("README.md", lambda data: data + b"<script>", "README.md"),
        ("README.md", lambda data: b"---\n" + b"x" * 70_000 + data, "and may have"),
        ("manifest.json", lambda _: b"{}", "manifest"),
        ("manifest.json", lambda _: None, "gramvec model"),
        ("model.onnx", lambda _: None, "model.onnx"),
        ("model.onnx", lambda data: data[:-1], "model.onnx has"),
        ("manifest.json", lambda data: data.replace(b'"vocabulary.safetensors"', b'"../v.bin"'), "manifest.json"),
    ],
)
def test_what_a_stranger_has_put_there_is_refused_and_leaves_nothing(
    shell: Shell, hub: StandIn, tmp_path: Path, name: str, change: object, word: str
) -> None:
    files = files_of(SIF)
    changed = change(files[name])  # type: ignore[operator]
    hub.commit(NAME, {key: value for key, value in {**files, name: changed}.items() if value is not None})
    assert word in shell.refused("pull", NAME, "here")
    assert not [path.name for path in tmp_path.iterdir() if path.name != "home"]


def test_other_files_of_a_repository_stay_there(shell: Shell, hub: StandIn, tmp_path: Path) -> None:
    hub.commit(NAME, {**files_of(SIF), "pytorch_model.bin": b"pickle", "sub/evil.py": b"import os"})
    shell.done("pull", NAME, "here")
    assert files_of(tmp_path / "here") == files_of(SIF)
    assert {"pytorch_model.bin", "sub/evil.py"}.isdisjoint(hub.downloaded)


def test_what_goes_wrong_is_one_sentence(hub: StandIn, tmp_path: Path) -> None:
    writer, reader = Shell(tmp_path, hub, WRITER), Shell(tmp_path, hub, READER)
    nobody, stranger = Shell(tmp_path, hub, None), Shell(tmp_path, hub, "hf_wrong")
    writer.done("push", SIF, NAME)
    assert "may not do that" in reader.refused("push", SIF, NAME)
    assert "token" in stranger.refused("push", SIF, NAME)
    assert "set HF_TOKEN" in nobody.refused("push", SIF, NAME)
    assert nobody.done("pull", NAME, "open")[0] == "sif"
    assert "org/other" in writer.refused("pull", "org/other")
    assert "no such revision" in writer.refused("pull", f"{NAME}@{'f' * 40}", "x")
    for bad in ("a b", "a/b/c", ""):
        assert "repository" in writer.refused("pull", bad, "x")
    assert "repository" in writer.refused("push", SIF, "../x")
    assert "no model 'nowhere'" in writer.refused("push", "nowhere", NAME)
    hub.failing = 418
    assert "the hub answered 418" in writer.refused("pull", NAME, "x")
    with kept_port() as port:
        away = Shell(tmp_path, None, WRITER, HF_ENDPOINT=f"http://127.0.0.1:{port}")
        assert "cannot be reached" in away.refused("pull", NAME, "x")
        assert "cannot be reached" in away.refused("push", SIF, NAME)
    offline = Shell(tmp_path, hub, WRITER, HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE is set" in offline.refused("pull", NAME, "x")


def test_save_copies_a_bundle_and_nothing_else(tmp_path: Path) -> None:
    shell = Shell(tmp_path, None, None)
    linked = tmp_path / "linked"
    linked.mkdir()
    for path in SIF.iterdir():
        (linked / path.name).symlink_to(path)
    (linked / "secrets.txt").write_text("not part of it")
    name, digest, folder = shell.done("save", linked, "deep/copy")
    assert (name, digest, folder) == ("sif", open_bundle(SIF).digest, "deep/copy")
    copy = tmp_path / "deep" / "copy"
    assert files_of(copy) == files_of(SIF)
    assert not any(path.is_symlink() for path in copy.iterdir())
    assert "holds a model already" in shell.refused("save", SIF, copy)
    shell.done("save", SIF, copy, "--overwrite")
    assert "no model 'nowhere'" in shell.refused("save", "nowhere", "x")
    (linked / "vocabulary.safetensors").unlink()
    assert "vocabulary.safetensors" in shell.refused("save", linked, "x")
    assert not (tmp_path / "x").exists()


def test_an_older_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.__version__", "1.33.0")
    with refused(InputError, "huggingface-hub 2", "1.33.0", "gramvec[hub]"):
        pull("org/model")
