from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

import gramvec
from conftest import KeptProgress
from gramvec.errors import InputError
from gramvec.features.spec import FeatureSpec
from gramvec_training.config import Distillation, parse_config
from gramvec_training.data.corpus import Corpus, collect_texts
from gramvec_training.data.misspelling import misspell
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.export.bundle import NO_MEMO
from gramvec_training.objectives.base import Examples
from gramvec_training.objectives.distillation import TaughtTexts, TeacherObjective, TeacherSettings, distillation_loss
from gramvec_training.sections import OBJECTIVES, ObjectiveSettings, TextSource
from gramvec_training.teachers import TransformerTeacher, digest_texts, find_principal_projection, project_vectors
from support.training import call, export_table, words_teach


def test_the_loss_by_hand() -> None:
    student = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    teacher = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    # Cosines to the teacher: 1 and 0.8, so 1 - mean = 0.1. Student's cosines [[1, 0], [0, 1]], teacher's
    # [[1, 0.6], [0.6, 1]]: mean square (0 + 0.36 + 0.36 + 0) / 4 = 0.18.
    assert distillation_loss(student, teacher, relation=0.0).item() == pytest.approx(0.1)
    assert distillation_loss(student, teacher, relation=0.5).item() == pytest.approx(0.1 + 0.09)


def test_the_projection_keeps_the_leading_axes() -> None:
    random = np.random.default_rng(0)
    vectors = np.zeros((500, 6), np.float16)
    vectors[:, 1] = random.normal(size=500) * 3
    vectors[:, 4] = random.normal(size=500)
    projection = find_principal_projection(vectors, 2)
    np.testing.assert_allclose(np.abs(projection.axes), [[0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]], atol=0.05)
    assert projection.kept == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(
        project_vectors(torch.from_numpy(vectors), projection.on(torch.device("cpu"))).norm(dim=1).numpy(), 1, rtol=1e-5
    )
    assert find_principal_projection(vectors, 1).kept == pytest.approx(0.9, abs=0.02)


def test_whitened_axes_have_variances_to_a_power() -> None:
    vectors = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float16) * np.array([4, 2, 1], np.float16)
    variances = {}
    for whitening in (0.0, 0.5, 1.0):
        axes = find_principal_projection(vectors, 3 if whitening else 2, whitening=whitening).axes
        variances[whitening] = np.square(vectors.astype(np.float32) @ axes.T).mean(axis=0)
    assert variances[0.0] == pytest.approx([16, 4], rel=0.1)
    assert variances[0.5] / variances[0.5][0] == pytest.approx([1, 1 / 2, 1 / 4], rel=0.1)  # of 1, 1/4 and 1/16
    assert variances[1.0] / variances[1.0][0] == pytest.approx([1, 1, 1], rel=0.1)


def test_dropout_leaves_out_features_of_its_kind_alone_and_others_each_step() -> None:
    offsets = np.arange(0, 4001, 40)
    corpus = Corpus(np.tile(np.arange(40, dtype=np.int32), 100), offsets, 40)
    rates = np.where(np.arange(40) < 20, 0.4, 0).astype(np.float32)
    settings = Distillation(teacher="t", batch=100, seed=3, steps=2)
    vectors = np.eye(100, 4, dtype=np.float16)
    objective = TeacherObjective(
        TaughtTexts(corpus, np.arange(100), vectors, find_principal_projection(vectors, 4), rates),
        settings,
        torch.device("cpu"),
    )
    batches = [objective.examples_at(step).batch for step in (0, 1, 0)]
    for batch in batches:
        features = batch.rows[batch.ids]
        assert np.count_nonzero(features >= 20) == 2000
        assert 0.55 < np.count_nonzero(features < 20) / 2000 < 0.65
        assert batch.offsets[-1] == len(features) and np.all(np.diff(batch.offsets) >= 20)
    assert np.array_equal(batches[0].ids, batches[2].ids)
    assert not np.array_equal(batches[0].offsets, batches[1].offsets)


def test_texts_are_collected_once_with_caps_and_spans(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("One two three. Four five six seven eight!\nOne two three.\n" + "x" * 99 + "\n")
    (tmp_path / "a.pairs.tsv").write_text("left side\tright side\n\tonly\n")
    (tmp_path / "freq.txt").write_text("the 9\nof 5\nrare 1\n")
    sources = [
        TextSource(path=Path("lines.txt"), sentences=True, max_characters=50),
        TextSource(path=Path("a.pairs.tsv"), layout="columns"),
        TextSource(path=Path("freq.txt"), layout="words", cap=2),
    ]
    texts, counts = collect_texts(sources, tmp_path, spans=0, seed=1)
    expected = {"One two three.", "Four five six seven eight!", "left side", "right side", "only", "the", "of"}
    assert len(texts) == len(expected)
    assert set(texts) == expected
    assert counts == {"lines": 2, "a": 3, "freq": 2}
    assert collect_texts(sources, tmp_path, spans=0, seed=1)[0] == texts
    assert collect_texts(sources, tmp_path, spans=0, seed=2)[0] != texts
    with_spans, counts = collect_texts(sources, tmp_path, spans=7, seed=1)
    (span,) = set(with_spans) - expected
    assert span in "Four five six seven eight"
    assert counts["spans"] == 1
    with pytest.raises(InputError, match=r"lines\.txt: gives no text that is wanted"):
        collect_texts([TextSource(path=Path("lines.txt"), max_characters=3)], tmp_path, spans=0, seed=1)


def test_misspelt_copies_change_longer_words_alone() -> None:
    texts = ["he is on an ox", "Wonderful buildings everywhere", "3.14 %%%%"]
    copies = misspell(texts, np.random.default_rng(0), share=1.0, known={})
    assert copies[0] == texts[0]
    assert copies[2] == texts[2]
    for before, after in zip(texts[1].split(), copies[1].split(), strict=True):
        assert before != after
        assert abs(len(before) - len(after)) <= 1
    first = misspell(["buildings"] * 50, np.random.default_rng(0), share=1.0, known={})
    assert 0 < sum(word[0] != "b" for word in first) < 25  # first letters are rarely wrong, but they are
    real = misspell(["definitely"] * 50, np.random.default_rng(0), share=0.1, known={"definitely": ["definately"]})
    assert 10 < real.count("definately") < 40
    assert "definitely" not in real


def test_a_config_names_one_way_to_train() -> None:
    values = {"model": {"name": "x", "kind": "gramvec"}, "distillation": {"teacher": "t", "steps": 1}}
    with pytest.raises(InputError, match=r"needs at least one \[\[texts\]\]"):
        parse_config(values, source="config")
    with pytest.raises(InputError, match="either steps or epochs"):
        parse_config(values | {"distillation": {"teacher": "t"}, "texts": [{"path": "a"}]}, source="config")
    with pytest.raises(InputError, match="one of"):
        parse_config(values | {"training": {"steps": 1}, "texts": [{"path": "a"}]}, source="config")


def test_a_missing_teacher_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: .*sentence-transformers"):
        TransformerTeacher("nowhere", tmp_path)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A sentence-transformers model of 8 dimensions with random weights, made here: the real loading code runs."""
    transformers = pytest.importorskip("transformers", reason="the extra `distill` is not installed")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    folder = tmp_path / "bert"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]))
    config = transformers.BertConfig(
        vocab_size=15, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    stack = [modules.Transformer(str(folder)), modules.Pooling(8)]
    sentence_transformers.SentenceTransformer(modules=stack, device="cpu").save(str(tmp_path / "model"))
    return tmp_path / "model"


@pytest.mark.filterwarnings("ignore")
def test_a_teachers_vectors_are_computed_once_and_resumed(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramvec_training.teachers.BLOCK_TEXTS", 3)
    texts = ["a b", "c", "d e f", "g h", "i j a b c", "a"]
    teacher = TransformerTeacher(model, tmp_path / "cache")
    progress = KeptProgress()
    vectors = teacher.vectors(texts[:4], progress=progress)
    assert vectors.shape == (4, 8)
    assert vectors.dtype == np.float16
    assert progress.tasks == [("teacher", 4)] and sum(progress.steps) == 4
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float32), axis=1), 1, atol=2e-3)
    blocks = {path: path.stat().st_mtime_ns for path in teacher.folder.glob("*.npz")}
    assert len(blocks) == 2

    again = TransformerTeacher(model, tmp_path / "cache")
    computed: list[str] = []
    encode = again._encode
    monkeypatch.setattr(again, "_encode", lambda block: computed.extend(block) or encode(block))
    everything = again.vectors(texts)
    assert sorted(computed) == sorted(texts[4:])
    assert np.array_equal(everything[:4], vectors)
    assert all(path.stat().st_mtime_ns == time for path, time in blocks.items())
    assert len(np.unique(digest_texts(texts), axis=0)) == len(texts)


@pytest.mark.filterwarnings("ignore")
def test_a_student_is_distilled_exported_and_resembles_its_teacher(model: Path, tmp_path: Path) -> None:
    letters = "abcdefghij"
    texts = [f"{a} {b}{c}" for a in letters for b in letters for c in letters[:5]]
    (tmp_path / "texts.txt").write_text("\n".join(texts))

    run = tmp_path / "run"
    options = ["--texts", tmp_path / "texts.txt", "--teacher", model, "--cache", tmp_path / "cache", "--out", run]
    refused = call("distill", *options)
    assert refused.exit_code == 1
    assert "he teacher has 8 dimensions" in refused.stderr
    assert call("distill", *options, "--dimension", "8", "--epochs", "400", "--overwrite").exit_code == 0
    assert call("export", run, "-o", tmp_path / "bundle").exit_code == 0
    teacher = TransformerTeacher(model, tmp_path / "cache").vectors(texts).astype(np.float32)
    student = gramvec.load(tmp_path / "bundle", device="cpu").embed(texts)
    learned = np.corrcoef((teacher @ teacher.T).ravel(), (student @ student.T).ravel())[0, 1]
    assert learned > 0.9


def test_a_bundle_goes_on_as_its_own_teacher(tmp_path: Path) -> None:
    stems = ["garden", "winter", "butter", "castle", "market", "silver", "planet", "bridge"]
    texts = [f"{a}{b} {c}" for a in stems for b in ("", "er", "ing") for c in stems]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    # Of a misspelt text the n-grams of the first model say nothing.
    config = words_teach(tmp_path, texts)
    with config.open("a") as file:
        file.write("batch = 64\nrate = 0.01\nepochs = 40\nmisspelt = 1.0\nspans = 0\n")
    run = tmp_path / "run"
    options = ["--data", tmp_path, "--cache", tmp_path / "cache", "--out", run]
    result = call("distill", config, *options)
    assert result.exit_code == 0, result.output
    result = call("export", run, "-o", tmp_path / "second")
    assert result.exit_code == 0, result.output

    first, second = gramvec.load(tmp_path / "first"), gramvec.load(tmp_path / "second")
    assert (second.manifest.rows, second.manifest.ngrams) == (first.manifest.rows, first.manifest.ngrams)
    assert first.digest[:12] in (tmp_path / "second" / "manifest.json").read_text()
    assert np.mean(first.pair_similarity(texts, texts)) == pytest.approx(1)
    before = first.embed(texts)
    assert np.mean(np.sum(before * second.embed(texts), axis=1)) > 0.9
    copies = misspell(texts, np.random.default_rng(9), share=1.0, known={})
    near, far = (np.mean(np.sum(before * model.embed(copies), axis=1)) for model in (second, first))
    assert near > far + 0.1


class SquareSettings(ObjectiveSettings):
    kind: Literal["square"] = "square"
    section: ClassVar[Literal["training", "distillation"]] = "distillation"
    weight: float = 1.0


class SquareObjective(TeacherObjective):
    """The squared distance to the teacher's vectors."""

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        targets = self.teacher_vectors(examples, vectors.device)
        loss: Tensor = self.settings.weight * (vectors - targets).square().sum(dim=1).mean()
        return loss


def test_another_objective_of_distillation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    OBJECTIVES.find_class(TeacherSettings())  # imports the other objectives
    monkeypatch.setattr(OBJECTIVES, "_classes", {**OBJECTIVES._classes})
    OBJECTIVES.register(SquareSettings)(SquareObjective)
    words = ["garden", "winter", "castle", "market", "silver", "planet", "bridge", "river"]
    texts = [f"{left} {right}" for left in words for right in words]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    config = words_teach(tmp_path, texts)
    with config.open("a") as file:
        file.write('batch = 16\nepochs = 40\nmisspelt = 0.0\n[objective]\nkind = "square"\nweight = 2.0\n')
    result = call("distill", config, "--data", tmp_path, "--cache", tmp_path / "cache", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert call("export", tmp_path / "run", "-o", tmp_path / "second").exit_code == 0
    assert "objective square, weight 2.0" in (tmp_path / "second" / "README.md").read_text()
    first, second = gramvec.load(tmp_path / "first"), gramvec.load(tmp_path / "second")
    assert np.mean(np.sum(first.embed(texts) * second.embed(texts), axis=1)) > 0.8


@pytest.mark.parametrize("encoder", ["lstm", "charlstm"])
def test_a_student_that_reads_in_order(tmp_path: Path, encoder: str) -> None:
    """An LSTM over words or characters learns a bag's vectors, and serves them."""
    words = ["garden", "winter", "castle", "market", "silver", "planet", "bridge", "river"]
    texts = [f"{a} {b}" for a in words for b in words] + words
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    spec = FeatureSpec(orders=(), words=True)
    vocabulary = build_vocabulary(texts, spec)
    table = np.random.default_rng(0).normal(0, 1, (len(vocabulary), 8)).astype(np.float32)
    export_table(
        tmp_path / "teacher", name="teacher", kind="gramvec", spec=spec, vocabulary=vocabulary, table=table,
        pooling="mean", parity_texts=texts[:9], memo=NO_MEMO, provenance={"license": "ours"}, card="",
    )  # fmt: skip
    features = "orders = []\nwords = true" if encoder == "lstm" else "orders = [1]"
    (tmp_path / "student.toml").write_text(f"""
        [model]
        name = "student"
        kind = "{encoder}"
        dimension = 8
        width = 16
        [features]
        {features}
        [encoder]
        kind = "lstm"
        [distillation]
        teacher = "{tmp_path / "teacher"}"
        batch = 24
        rate = 0.02
        epochs = 60
        misspelt = 0
        [[texts]]
        path = "texts.txt"
    """)
    run = tmp_path / "run"
    result = call("distill", tmp_path / "student.toml", "--data", tmp_path, "--cache", tmp_path / "cache", "--out", run)
    assert result.exit_code == 0, result.output
    result = call("export", run, "-o", tmp_path / "student")
    assert result.exit_code == 0, result.output
    teacher, student = gramvec.load(tmp_path / "teacher"), gramvec.load(tmp_path / "student", device="cpu")
    assert student.manifest.graph.composition == "sequence"
    near = np.mean(np.sum(teacher.embed(texts) * student.embed(texts), axis=1))
    assert near > 0.9
