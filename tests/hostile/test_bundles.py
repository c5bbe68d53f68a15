"""Every attack ends in its sentence: when the library opens it, at the command line, and when a service reloads it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from gramvec.bundle.bundle import open_bundle
from gramvec.cli import cli
from gramvec.errors import BundleError
from gramvec.server.settings import Settings
from gramvec_training.export.bundle import ChosenChunks
from hostile.bundles import on_arrays, on_files, on_graphs, on_manifests  # noqa: F401 - each registers its attacks
from hostile.bundles.craft import ATTACKS, manifest
from support.http import PATIENCE, running, until
from support.wire import SAMPLES, small_bundle

pytestmark = pytest.mark.slow

KEY = {"authorization": "Bearer secret"}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_bundle(tmp_path_factory.mktemp("sound") / "small", memo=ChosenChunks(["fast", "car"], ["t c"]))


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "small"))


def test_the_sound_bundle_opens_once_it_was_put_together_again(folder: Path) -> None:
    with manifest(folder):
        pass
    assert open_bundle(folder).featurizer(SAMPLES) == open_bundle(folder, compiled=False).featurizer(SAMPLES)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_in_its_sentence(name: str, compiled: bool, folder: Path) -> None:
    made = ATTACKS[name]
    made.make(folder)
    if not compiled and "chosen to collide" in made.sentence:
        open_bundle(folder, compiled=False)  # numpy looks keys up by sorting, and has no slots
        return
    with pytest.raises(BundleError) as caught:
        open_bundle(folder, compiled=compiled)
    said = str(caught.value)
    sentence = made.sentence.replace("an entry is repeated", "repeated") if not compiled else made.sentence
    assert sentence in said
    assert said.startswith(str(folder / made.file))
    assert "\n" not in said
    assert len(said) < 1_000
    assert said.isprintable()


def test_what_is_printed_of_a_bundle_moves_no_cursor(folder: Path) -> None:
    with manifest(folder) as values:
        values["provenance"] = {"license": "\x1b[2Jfree", "data": [{"name": "one\rtwo"}, {"name": ["\x07"]}]}
    done = CliRunner().invoke(cli, ["inspect", str(folder)])
    assert done.exit_code == 0, done.output
    assert "license     \\x1b[2Jfree" in done.output
    assert all(line.isprintable() for line in done.output.splitlines())
    assert CliRunner().invoke(cli, ["inspect", "--json", str(folder)]).exit_code == 0


def test_verify_says_a_sentence_for_each_and_ends_with_exit_code_1(sound: Path, tmp_path: Path) -> None:
    folders = []
    for number, made in enumerate(ATTACKS.values()):
        home = tmp_path / str(number)
        home.mkdir()
        folders.append(shutil.copytree(sound, home / "small"))
        made.make(folders[-1])
    command = [sys.executable, "-m", "gramvec", "verify", "--device", "cpu", str(sound), *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert done.stdout.count("ok") == 1
    lines = done.stderr.splitlines()
    assert len(lines) == len(ATTACKS) + 1
    assert all(line.startswith("Error: ") for line in lines)
    assert lines[-1] == f"Error: {len(ATTACKS)} of {len(ATTACKS) + 1} models failed"


@pytest.fixture(scope="module")
def served(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = Path(shutil.copytree(sound, tmp_path_factory.mktemp("served") / "small"))
    with running(Settings(model=(str(folder),), api_key=("secret",), runtime="native")) as server:
        until(lambda: httpx.get(f"{server.url}/ready").status_code == 200)
        yield server.url, folder


RELOADED = [
    "a device without end",
    "a pipe",
    "a table in a file above",
    "keys that all want one slot",
    "half a million unknown keys",
    "a graph that loops for ever",
    "memo.safetensors: a reach whose double is none",
]


@pytest.mark.parametrize("name", RELOADED)
def test_a_reload_of_one_is_answered_422_and_the_next_goes_on(
    name: str, served: tuple[str, Path], sound: Path, tmp_path: Path
) -> None:
    url, folder = served
    bad = Path(shutil.copytree(sound, tmp_path / "small"))
    ATTACKS[name].make(bad)
    kept = folder.with_name("kept")
    folder.rename(kept)
    bad.rename(folder)
    answer = httpx.post(f"{url}/admin/reload", headers=KEY, timeout=PATIENCE)
    assert (answer.status_code, answer.json()["error_type"]) == (422, "validation")
    assert ATTACKS[name].sentence in json.loads(answer.content)["error"]
    folder.rename(tmp_path / "spent")
    kept.rename(folder)
    assert httpx.post(f"{url}/admin/reload", headers=KEY, timeout=PATIENCE).json()["models"][0]["changed"] is False
    assert httpx.post(f"{url}/embed", json={"inputs": "a fast car"}, headers=KEY).status_code == 200
