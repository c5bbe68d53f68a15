from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import gramvec
from conftest import MODELS, SHIPPED
from gramvec import native
from gramvec.bundle.bundle import copy_bundle, open_bundle, stage_folder
from gramvec.bundle.manifest import VOCABULARY, Manifest
from gramvec.bundle.resolve import find_bundle
from gramvec.bundle.verified_files import Folder
from gramvec.errors import BundleError, InputError
from gramvec.explain.contributions import explain
from gramvec.features.featurizer import Featurizer
from hostile.bundles.craft import manifest
from support.errors import refused


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_bundles_open_and_pass_their_golden_texts(name: str) -> None:
    embedder = gramvec.load(MODELS / name, device="cpu")
    assert embedder.name == name
    assert len(embedder.manifest.golden) >= 5
    assert "" in [golden.text for golden in embedder.manifest.golden]
    assert (MODELS / name / "README.md").read_text(encoding="utf-8").startswith("# ")
    embedder.close()


@pytest.mark.skipif(
    native.loops is None, reason="without the loops in C, numpy's indexes are made when a bundle is opened"
)
def test_numpy_makes_what_it_searches_when_it_is_first_asked() -> None:
    bundle = open_bundle(MODELS / "charagram-phrase")
    indexes = {"ngram_index", "word_index"}
    assert bundle.memoized(["a fast car"]).counts.all()
    assert not indexes & vars(bundle.vocabulary).keys()
    Featurizer(bundle.spec, bundle.vocabulary, compiled=False)
    assert indexes <= vars(bundle.vocabulary).keys()


def edit_manifest(change: Callable[[dict[str, object]], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        with manifest(folder) as values:
            change(values)

    return edit


def flip_byte(name: str) -> Callable[[Path], None]:
    def flip(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 1
        (folder / name).write_bytes(data)

    return flip


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-100])


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def other_golden_vector(values: dict[str, object]) -> None:
    vector = values["golden"][0]["vector"]  # type: ignore[index]
    vector[0], vector[1] = -vector[1], 3 * vector[0]


DAMAGES = {
    "missing manifest": (remove("manifest.json"), "manifest.json", "export the model again"),
    "missing graph": (remove("model.onnx"), "model.onnx", "copy or export the model again"),
    "truncated table": (cut("model.onnx.data"), "model.onnx.data", "bytes, the manifest has"),
    "truncated manifest": (cut("manifest.json"), "manifest.json", "not JSON"),
    "flipped byte in table": (flip_byte("model.onnx.data"), "model.onnx.data", "SHA-256"),
    "flipped byte in vocabulary": (flip_byte("vocabulary.safetensors"), "vocabulary.safetensors", "SHA-256"),
    "other version": (
        edit_manifest(lambda values: values.update(format_version=1)),
        "manifest.json",
        "version 1",
    ),
    "other format": (
        edit_manifest(lambda values: values.update(format="zip")),
        "manifest.json",
        "not the manifest",
    ),
    "missing field": (edit_manifest(lambda values: values.pop("dimension")), "manifest.json", "dimension: Field"),
    "odd field": (edit_manifest(lambda values: values.update(color=1)), "manifest.json", "color: Extra"),
    "other spec": (
        edit_manifest(lambda values: values["features"].update(orders=[2, 3])),  # type: ignore[attr-defined]
        "manifest.json",
        "features_digest",
    ),
    "unknown rule": (
        edit_manifest(lambda values: values["features"].update(padding="#")),  # type: ignore[attr-defined]
        "manifest.json",
        "padding '#' is not known",
    ),
    "other rows": (
        edit_manifest(lambda values: values.update(rows=3)),
        "manifest.json",
        "graph.stored.rows: 81000",
    ),
    "other n-grams": (edit_manifest(lambda values: values.update(ngrams=3)), VOCABULARY, "the manifest has 3"),
    "other golden features": (
        edit_manifest(lambda values: values["golden"][0]["ids"].pop()),  # type: ignore[index]
        "vocabulary.safetensors",
        "golden text 0 has other features",
    ),
    "other golden vector": (edit_manifest(other_golden_vector), "model.onnx", "other vectors than when"),
    "file outside": (
        edit_manifest(lambda values: values["files"].update({"../x": {"bytes": 1, "sha256": ""}})),  # type: ignore[attr-defined]
        "manifest.json",
        "../x",
    ),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_bad_bundle_is_refused_with_the_file_and_the_remedy(bundle_copy: Path, case: str) -> None:
    damage, file, message = DAMAGES[case]
    gramvec.load(bundle_copy, device="cpu").close()
    damage(bundle_copy)
    with pytest.raises(BundleError) as caught:
        gramvec.load(bundle_copy, device="cpu")
    text = str(caught.value)
    assert file in text
    assert message in text
    assert "\n" not in text


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """A model as huggingface_hub's cache holds it: a folder of links to files that are named by their digests."""
    snapshot = tmp_path / "models--gramvec--sif" / "snapshots" / "0123456789abcdef"
    blobs = snapshot.parents[1] / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for file in (MODELS / "sif").iterdir():
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        shutil.copy(file, blobs / digest)
        (snapshot / file.name).symlink_to(Path("../../blobs") / digest)
    return snapshot


@pytest.mark.parametrize("runtime", ["native", "onnx"])
def test_links_are_followed_to_where_a_cache_keeps_its_files(
    cached: Path, tmp_path: Path, runtime: Literal["native", "onnx"]
) -> None:
    (tmp_path / "link").symlink_to(cached)
    expected = gramvec.load(MODELS / "sif", device="cpu").embed(["a fast car"])
    for path in (cached, tmp_path / "link"):
        found = gramvec.load(path, device="cpu", runtime=runtime).embed(["a fast car"])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    # And what they lead to is held to the digests as ever.
    flip_byte("vocabulary.safetensors")(cached)
    with refused(BundleError, "vocabulary.safetensors", "SHA-256"):
        open_bundle(cached)


def test_one_folder_is_opened_though_its_name_means_another_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "model"
    link.symlink_to(MODELS / "sif")
    read = Folder.manifest

    def then_turn(folder: Folder) -> tuple[Manifest, str]:
        found = read(folder)
        link.unlink()
        link.symlink_to(MODELS / "charagram-phrase")
        return found

    monkeypatch.setattr(Folder, "manifest", then_turn)
    bundle = open_bundle(link)
    assert (bundle.manifest.name, len(bundle.vocabulary)) == ("sif", bundle.manifest.rows)
    assert bundle.weights is not None
    assert len(bundle.weights.table) == bundle.manifest.table_rows


def test_tables_that_are_changed_or_cut_in_place_after_they_were_read_do_no_harm(bundle_copy: Path) -> None:
    """They are small, and held in memory; the rows are mapped."""
    embedder = gramvec.load(bundle_copy, device="cpu", runtime="native")
    texts = ["a fast car", "the quick brown fox jumps over the lazy dog"]
    before, explained = embedder.embed(texts), explain(embedder, *texts).to_dict()
    for name in ("vocabulary.safetensors", "memo.safetensors"):
        (bundle_copy / name).write_bytes(b"\xff" * 1_000)
        os.truncate(bundle_copy / name, 0)
    assert embedder.embed(texts).tobytes() == before.tobytes()
    assert explain(embedder, *texts).to_dict()["features"] == explained["features"]
    assert len(embedder.bundle.vocabulary.entries()) == embedder.manifest.rows
    embedder.close()


@pytest.mark.parametrize("grows", [True, False])
def test_a_file_that_grows_or_shrinks_once_it_was_measured(
    bundle_copy: Path, monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    """No more is read than what was measured, so what is behind it does not matter; what is cut off does."""
    sizes = {file.name: file.stat().st_size for file in bundle_copy.iterdir()}
    fstat = os.fstat

    def then_change(descriptor: int) -> os.stat_result:
        found = fstat(descriptor)
        file = Path(f"/proc/self/fd/{descriptor}").readlink()
        if file.parent == bundle_copy:
            os.truncate(file, found.st_size + 4_096 if grows or file.name != "vocabulary.safetensors" else 100)
        return found

    monkeypatch.setattr(os, "fstat", then_change)
    if grows:
        bundle = open_bundle(bundle_copy)
        assert bundle.weights is not None
        assert len(bundle.weights.data) == sizes["model.onnx.data"]
        assert all(file.stat().st_size == sizes[file.name] + 4_096 for file in bundle_copy.iterdir())
    else:
        with refused(BundleError, "vocabulary.safetensors", "SHA-256"):
            open_bundle(bundle_copy)


def test_finding_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_bundle("charagram-phrase").resolve() == MODELS / "charagram-phrase"
    assert find_bundle(MODELS / "charagram-phrase") == MODELS / "charagram-phrase"
    with refused(BundleError, "'nonesuch'", "charagram-phrase"):
        find_bundle("nonesuch")
    with refused(BundleError, "manifest.json", "missing"):
        find_bundle(tmp_path)
    with pytest.raises(BundleError, match="no model"):
        find_bundle("../charagram-phrase")


def test_the_variables_folders_come_first_then_models_then_the_checkouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in ("first", "second", "models"):
        shutil.copytree(MODELS / "sif", tmp_path / home / "sif")
    monkeypatch.chdir(tmp_path)
    assert find_bundle("sif") == Path("models") / "sif"
    monkeypatch.setenv("GRAMVEC_MODELS", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    assert find_bundle("sif") == tmp_path / "first" / "sif"
    shutil.rmtree(tmp_path / "first")
    assert find_bundle("sif") == tmp_path / "second" / "sif"
    shutil.rmtree(tmp_path / "second")
    shutil.rmtree(tmp_path / "models")
    assert find_bundle("sif").resolve() == MODELS / "sif"


def test_without_any_model_one_sentence_says_where_they_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gramvec.bundle.resolve.__file__", str(tmp_path / "gramvec" / "bundles" / "finding.py"))
    with pytest.raises(BundleError) as caught:
        find_bundle("gramvec-en")
    said = str(caught.value)
    assert "without a model" in said
    assert "./models" in said
    assert "GRAMVEC_MODELS" in said
    assert "\n" not in said


def test_a_staged_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "new" / "model"
    with pytest.raises(RuntimeError, match="stop"), stage_folder(target) as folder:
        (folder / "a").write_text("half")
        raise RuntimeError("stop")
    assert list(target.parent.iterdir()) == []
    for content in ("one", "two"):
        with stage_folder(target) as folder:
            (folder / "a").write_text(content)
            (folder / "manifest.json").write_text('{"format": "gramvec-bundle", "files": {"a": {}}}')
            assert not target.exists() or (target / "a").read_text() == "one"
        assert (target / "a").read_text() == content
    assert [path.name for path in target.parent.iterdir()] == ["model"]


def test_a_folder_is_replaced_only_if_all_of_it_is_one_model(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    copy_bundle("sif", folder)
    with refused(InputError, "holds a model", "--overwrite"):
        copy_bundle("sif", folder)
    copy_bundle("sif", folder, overwrite=True)
    (folder / "notes").mkdir()
    (folder / "notes" / "mine.txt").write_text("precious")
    with refused(InputError, "notes/mine.txt"):
        copy_bundle("sif", folder, overwrite=True)
    assert (folder / "notes" / "mine.txt").read_text() == "precious"
    app = tmp_path / "app"
    app.mkdir()
    (app / "manifest.json").write_text('{"name": "a web app"}')
    for write in (lambda: copy_bundle("sif", app, overwrite=True), lambda: stage_folder(app).__enter__()):
        with refused(InputError, "manifest.json"):
            write()
    assert (app / "manifest.json").read_text() == '{"name": "a web app"}'
