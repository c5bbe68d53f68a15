"""Training on a file of one's own: from a bundle's weights to a new bundle, with pairs held out."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import gramvec
from gramvec.bundle.four_bits import quantize_rows, unpack_levels
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.jobs.tables.inputs import Source
from gramvec.runtime.onnx_graph import column_scales, quantize_table
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.cli.support import report_held_out
from gramvec_training.config import Start, parse_config
from gramvec_training.data.sampling import HeldOut, join_held_out, split_held_out
from gramvec_training.data.vocabulary import extend_vocabulary
from gramvec_training.encoders.build import make_encode
from gramvec_training.evaluation.tasks import measure_retrieval, show_retrieval
from gramvec_training.readers import lines
from gramvec_training.readers.pairs import Group, read_paraphrases
from gramvec_training.runs.run_dir import load_run
from gramvec_training.runs.warm_start import begin_from, continue_encoder, extend_table, read_start
from gramvec_training.sections import DataSet
from support.errors import assert_names
from support.training import call, export_table, refused_before_torch, sentence

BOTH = FeatureSpec(orders=(2, 3), words=True)
WORDS = FeatureSpec(orders=(), words=True, unknown_words="row")
TEXTS = ["a man buys a car", "the car", "a man", "zzz", ""]


def bundle(
    folder: Path, spec: FeatureSpec = BOTH, *, precision: Any = "float32", pooling: str = "sum",
    activation: str = "linear", bias: bool = False, kind: str = "gramvec",
) -> tuple[Path, np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:  # fmt: skip
    """A small bundle with random weights, and these weights."""
    entries = [Entry("word", word, 5) for word in ("a", "man", "car", "buys")]
    if spec.orders:
        entries[2:2] = [Entry("ngram", text, 9) for text in (" a", "a ", "ma", "man", " ca", "ca", "ar")]
    if spec.unknown_words == "row":
        entries.append(Entry("unknown", "", 0))
    rng = np.random.default_rng(3)
    table = rng.normal(size=(len(entries), 8)).astype(np.float32)
    b = rng.normal(size=8).astype(np.float32) if bias else None
    export_table(
        folder,
        name=folder.name,
        kind=kind,
        spec=spec,
        vocabulary=Vocabulary.build(entries),
        table=table,
        bias=b,
        pooling=pooling,
        activation=activation,
        precision=precision,
        golden_texts=["a man"],
        provenance={"license": "ours"},
        card="",
    )
    return folder, table, b


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "int4"])
@pytest.mark.parametrize(
    ("spec", "pooling", "activation", "bias"),
    [(BOTH, "sum", "linear", False), (BOTH, "sum", "tanh", True), (WORDS, "mean", "linear", False)],
)
def test_the_weights_of_a_bundle_are_read_as_it_serves_them(
    tmp_path: Path, spec: FeatureSpec, pooling: str, activation: str, bias: bool, precision: str
) -> None:
    folder, table, b = bundle(
        tmp_path / "m", spec, precision=precision, pooling=pooling, activation=activation, bias=bias
    )
    started = read_start(Start(bundle=folder))
    columns = column_scales(table)
    values, scales = quantize_table(table / columns)
    fours = quantize_rows(table, columns)
    weights = fours.weights.astype(np.float32)[:, None]
    stored = {
        "int4": unpack_levels(fours.codes, 8) * weights * fours.step * columns,
        "float32": table,
        "float16": table.astype(np.float16).astype(np.float32),
        "int8": values * scales * columns,
    }
    np.testing.assert_array_equal(started.table, stored[precision])
    assert started.table.dtype == np.float32
    assert (started.bias is None) == (b is None)
    if b is not None:
        np.testing.assert_array_equal(started.bias, b)

    encode = started.encode()
    served = gramvec.load(folder, device="cpu").raw(TEXTS).vectors
    np.testing.assert_allclose(encode(TEXTS), served, atol=1e-6)


def test_new_rows_come_after_the_bundles_within_the_limits(tmp_path: Path) -> None:
    known = read_start(Start(bundle=bundle(tmp_path / "m")[0])).bundle.vocabulary
    texts = ["dog", "dog", "dog", "man", "fox fox fox fox", "cow"]

    def added(**limits: Any) -> list[tuple[str, str, int]]:
        entries = extend_vocabulary(Start(bundle=tmp_path, **limits), known, texts, BOTH).entries()
        assert entries[: len(known)] == known.entries()
        return [(entry.kind, entry.text, entry.count) for entry in entries[len(known) :]]

    assert added(max_ngrams=0) == [("word", "fox", 4), ("word", "dog", 3)]
    assert added(max_ngrams=0, max_words=1) == [("word", "fox", 4)]
    assert ("word", "cow", 1) in added(max_ngrams=0, min_count=1)
    assert added(max_words=0, max_ngrams=2, min_count=3) == [("ngram", " f", 4), ("ngram", " fo", 4)]
    assert {text for kind, text, _ in added() if kind == "ngram"} >= {"dog", "ox"}
    assert not {text for _, text, _ in added()} & {"man", "ma", "cow"}


def test_new_characters_stop_where_the_keys_are_full() -> None:
    """Order 6 leaves 10 bits a character: 1,023 of them."""
    spec = FeatureSpec(orders=(6,))
    letters = [chr(0x4E00 + n) for n in range(1023)]
    known = Vocabulary.build([Entry("ngram", "".join(letters[at : at + 6]), 1) for at in range(0, 1018, 6)])
    texts = ["".join(letters[5:-1:-1]) + "".join(letters[:6]), "abcdef abcdef"]
    left = 1023 - len(known.alphabet)
    found = extend_vocabulary(Start(bundle=Path(), min_count=1), known, texts, spec)
    assert len(found.alphabet) <= 1023
    assert 0 < len(found.alphabet) - len(known.alphabet) <= left
    assert len(found) > len(known)


def test_the_unknown_words_row_stays_last_and_new_words_begin_with_it(tmp_path: Path) -> None:
    folder, table, _ = bundle(tmp_path / "m", WORDS, pooling="mean")
    started = read_start(Start(bundle=folder))
    vocabulary = extend_vocabulary(Start(bundle=folder), started.bundle.vocabulary, ["dog dog"], WORDS)
    assert [entry.text for entry in vocabulary.entries()] == ["a", "man", "car", "buys", "dog", ""]
    assert vocabulary.unknown_row == 5
    np.testing.assert_array_equal(extend_table(started, vocabulary, 1), table[[0, 1, 2, 3, 4, 4]])


def test_new_ngrams_begin_small_and_by_the_seed(tmp_path: Path) -> None:
    folder, table, _ = bundle(tmp_path / "m")
    started = read_start(Start(bundle=folder))
    vocabulary = extend_vocabulary(Start(bundle=folder), started.bundle.vocabulary, ["dog dog"], BOTH)
    first, again, other = (extend_table(started, vocabulary, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[: len(table)], table)
    new = first[len(table) :]
    bound = (6 / (len(vocabulary) + 8)) ** 0.5
    assert 0.9 * bound < np.abs(new).max() <= bound
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_training_begins_with_the_vectors_of_the_bundle(tmp_path: Path) -> None:
    folder, _, _ = bundle(tmp_path / "m", activation="tanh", bias=True, precision="int8")
    started = read_start(Start(bundle=folder))
    vocabulary = extend_vocabulary(Start(bundle=folder), started.bundle.vocabulary, ["dog dog"], BOTH)
    encode = make_encode(continue_encoder(started, 1, vocabulary), Featurizer(BOTH, vocabulary))
    served = gramvec.load(folder, device="cpu").raw(TEXTS).vectors
    np.testing.assert_allclose(encode(TEXTS), served, atol=1e-6)


def test_a_config_must_ask_for_the_bundles_own_model(tmp_path: Path) -> None:
    folder, _, _ = bundle(tmp_path / "m", replace(BOTH, unicode="1.0"))  # of another Unicode version: no matter
    fitting: dict[str, Any] = {"dimension": 8, "pooling": "sum", "activation": "linear", "bias": False}

    def begun(orders: Sequence[int] = BOTH.orders, encoder: Any = None, **model: Any) -> None:
        values = {
            "model": {"name": "m", "kind": "gramvec", **model},
            "features": {"orders": orders, "words": True, "normalization": BOTH.normalization},
            "start": {"bundle": folder},
            "training": {"steps": 1},
            "data": [{"path": "x"}],
        }
        begin_from(parse_config(values | ({} if encoder is None else {"encoder": encoder}), source="test"))

    begun(**fitting)
    for change in ({"dimension": 9}, {"pooling": "mean"}, {"activation": "tanh"}, {"bias": True}):
        with pytest.raises(InputError, match=rf"{next(iter(change))}: not the value of the bundle m"):
            begun(**{**fitting, **change})
    with pytest.raises(InputError, match="features: not the value of the bundle"):
        begun(orders=(2,), **fitting)
    with pytest.raises(InputError, match="the config's encoder is two-layer"):
        begun(encoder={"kind": "two-layer"}, dimension=8)


def test_start_belongs_to_what_trains() -> None:
    values = {"model": {"name": "m", "kind": "gramvec"}, "start": {"bundle": "m"}}
    with pytest.raises(InputError, match=r"\[start\] belongs to \[training\] or \[distillation\]"):
        parse_config({**values, "sif": {"run": "r", "frequencies": "f"}}, source="x")
    config = parse_config({**values, "training": {"steps": 1}, "data": [{"path": "x"}]}, source="x")
    with pytest.raises(gramvec.errors.BundleError, match="no model"):
        begin_from(config.model_copy(update={"start": Start(bundle=Path("no-such-model"))}))


def split(data: DataSet, folder: Path, seed: int) -> tuple[list[Group], HeldOut]:
    """The groups of a file that are trained on, and the pairs that are held out."""
    groups, bad = read_paraphrases(folder / data.path, layout=data.layout)
    assert bad.count == 0
    return split_held_out(groups, data.held_out, seed)


def test_held_out_texts_are_in_no_training_pair(tmp_path: Path) -> None:
    rows = [f"text {n}\ttext {n + 1 if n % 4 else n + 1000}" for n in range(400)]  # chains of four
    (tmp_path / "a.tsv").write_text("\n".join(rows))
    one = DataSet(path=Path("a.tsv"), held_out=0.1)
    kept, held = split(one, tmp_path, 1)
    assert len(held) in range(36, 41)
    assert len(kept) + len(held) == 400
    assert not {text for group in kept for text in group} & {*held.left, *held.right}
    assert split(one, tmp_path, 1)[0] == kept
    assert split(one, tmp_path, 2)[0] != kept
    assert len(split(DataSet(path=Path("a.tsv")), tmp_path, 1)[0]) == 400


@pytest.mark.parametrize(("kind", "row"), [("pairs", "red {n}\t{n} red"), ("labels", "{n}\ttext {n}")])
def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, row: str) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(lines, "Source", lambda path: opened.append(path) or Source(path))
    (tmp_path / "a.tsv").write_text("".join(f"{row.format(n=n % 9)} {n}\n" for n in range(60)))
    result = call(f"fit-{kind}", tmp_path / "a.tsv", "--out", tmp_path / "run", "--epochs", "1")
    assert result.exit_code == 0, result.stderr
    assert opened == [tmp_path / "a.tsv"]


@pytest.mark.parametrize(
    ("rows", "held"),
    [
        ([f"a{n}\tb{n}" for n in range(9)], 0),  # too few
        ([f"a{n}\tb{n}" for n in range(10)], 2),
        ([f"a\tb{n}" for n in range(100)], 0),  # one meaning
        ([f"a{n % 2}\tb{n}" for n in range(100)], 0),  # two meanings, each more than is wanted
    ],
)
def test_what_cannot_be_spared_is_trained_on(tmp_path: Path, rows: list[str], held: int) -> None:
    (tmp_path / "a.tsv").write_text("\n".join(rows))
    one = DataSet(path=Path("a.tsv"), held_out=0.1)
    assert len(split(one, tmp_path, 1)[1]) == held
    assert len(split(one, tmp_path, 1)[0]) == len(rows) - held


def test_held_out_pairs_of_two_files_keep_their_meanings_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.tsv").write_text("\n".join(f"{name}{n}\t{name}{n}x" for n in range(20)))
    sets = [DataSet(path=Path(f"{name}.tsv"), held_out=0.1) for name in ("a", "b")]
    held = join_held_out([split(one, tmp_path, 1)[1] for one in sets])
    assert [text[0] for text in held.left] == ["a", "a", "b", "b"]
    assert len(set(held.meanings.tolist())) == 4


def test_retrieval_by_hand() -> None:
    """Cosines of the left texts (rows) with the right ones:

         r0    r1    r2    r3      own  best other  rank
    l0  1.0   0.0   0.6   0.6      1.0     0.6        1
    l1  0.0   1.0   0.8   0.8      1.0     0.8        1
    l2  0.8   0.6   0.96  0.96     0.96    0.8        1    (r3 has the meaning of r2 and does not compete)
    l3  0.0   0.0   0.0   0.0      0.0     0.0        3    (a text without features: ties count against it)
    """
    vectors = {"l0": (1, 0), "r0": (1, 0), "l1": (0, 1), "r1": (0, 1), "l2": (0.8, 0.6), "r2": (0.6, 0.8)}
    vectors |= {"l3": (0, 0), "r3": (0.6, 0.8)}
    pairs = HeldOut(["l0", "l1", "l2", "l3"], ["r0", "r1", "r2", "r3"], np.array([0, 1, 2, 2]))
    found = measure_retrieval(pairs, lambda texts: np.array([vectors[text] for text in texts], np.float32))
    assert found == pytest.approx(
        {"top1": 75, "mrr": 100 * (3 + 1 / 3) / 4, "cosine": 2.96 / 4, "margin": (0.4 + 0.2 + 0.16 + 0) / 4}
    )
    shown = show_retrieval({"pairs": 4, "before": found, "after": {**found, "top1": 100.0}})
    assert shown.splitlines()[:2] == [
        "4 held-out pairs             before    after",
        "right side found first, %      75.0    100.0",
    ]
    assert "before" not in show_retrieval({"pairs": 4, "before": None, "after": found})


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    verbs, things = ("buys", "sells", "sees", "likes", "draws", "mends"), ("car", "dog", "house", "tree", "film")
    rows = [f"a man {verb} the {thing}\t{thing}: {verb}, says the man" for verb in verbs for thing in things]
    (folder / "my.tsv").write_text("\n".join(rows), encoding="utf-8")
    return folder / "my.tsv"


@pytest.mark.parametrize("kind", ["gramvec", "sif"])
def test_from_a_bundle_to_a_bundle_in_one_command(
    pairs: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = BOTH if kind == "gramvec" else replace(WORDS, unknown_words="skip")
    folder, table, _ = bundle(
        tmp_path / "small", spec, precision="int8", kind=kind, pooling="sum" if spec is BOTH else "mean"
    )
    options = [pairs, "--from", folder, "--out", tmp_path / "run"]
    result = call("fit-pairs", *options, "--export", tmp_path / "new", "--anyway")
    assert result.exit_code == 0, result.output
    run = load_run(tmp_path / "run")
    found = run.record["held_out"]
    assert result.stdout.startswith(show_retrieval(found) + "\n")
    assert found["pairs"] == 3
    assert found["after"] != found["before"]
    assert run.record["start"] == {
        "name": "small",
        "digest": gramvec.load(folder, device="cpu").digest,
        "license": "ours",
        "rows": len(table),
    }
    assert run.record["command"] == "gramvec-train fit-pairs my.tsv --from small"
    assert str(tmp_path) not in (tmp_path / "run" / "run.json").read_text()
    moved = np.abs(run.encoder.arrays()["table"][: len(table)] - read_start(Start(bundle=folder)).table).max()
    assert 0 < moved < 0.01  # ten steps of 0.0005 at most

    new = gramvec.load(tmp_path / "new", device="cpu")
    manifest = new.manifest
    assert (manifest.name, manifest.kind, manifest.graph.precision) == ("new", kind, "int8")
    assert manifest.rows == len(run.vocabulary) > len(table)
    assert manifest.provenance["held_out"] == found
    held = join_held_out([split(one, tmp_path, 1)[1] for one in run.config.data])
    assert not {*held.left, *held.right} & set(run.texts)

    assert not (tmp_path / "run" / "checkpoint.pt").exists()

    # Begun again from a checkpoint, the end is the same; with another bundle in its place it is refused.
    again = ["--out", tmp_path / "again", "--save-every", "0"]
    with monkeypatch.context() as full:
        full.setattr("gramvec_training.runs.train.finish_run", _full_disk)
        assert "No space left" in sentence(call("fit-pairs", *options[:-2], *again))
    assert (tmp_path / "again" / "checkpoint.pt").exists()
    assert call("fit", *again, "--resume").exit_code == 0
    repeated = load_run(tmp_path / "again")
    assert repeated.encoder.arrays()["table"].tobytes() == run.encoder.arrays()["table"].tobytes()
    assert repeated.record["held_out"] == found
    (tmp_path / "again" / "run.json").unlink()
    bundle(folder, spec, kind=kind, pooling="mean")
    assert "has changed since the run began" in sentence(call("fit", *again, "--resume"))


def _full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_default_folder_is_that_of_the_export_and_a_finished_run_is_exported(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small = bundle(tmp_path / "models" / "small")[0]
    result = call("fit-pairs", pairs, "--from", "small", "--epochs", "1", "--export", "models/My New", "--anyway")
    assert result.exit_code == 0, result.output
    record = orjson.loads(Path("runs/my-new/run.json").read_bytes())
    assert record["command"] == "gramvec-train fit-pairs my.tsv --from small --epochs 1"
    assert gramvec.load("models/My New", device="cpu").name == "My New"
    later = call("fit", "--out", "runs/my-new", "--resume", "--export", "models/again", "--anyway")
    assert later.exit_code == 0, later.output
    assert (
        gramvec.load("again", device="cpu").manifest.rows
        == record["rows"]
        > read_start(Start(bundle=small)).table.shape[0]
    )


@pytest.mark.parametrize(("before", "after", "said"), [(80.0, 79.0, True), (80.0, 80.0, False), (None, 1.0, False)])
def test_less_well_than_before_is_said(
    before: float | None, after: float, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"top1": 70.0, "cosine": 0.5, "margin": 0.1}
    result = {
        "pairs": 40,
        "before": None if before is None else {**found, "mrr": before},
        "after": {**found, "mrr": after},
    }
    if before is not None:
        said_of_it = {"measure": "mrr", "before": before, "after": after, "low": -2.0, "high": 1.5, "better": False}
        result["verdict"] = said_of_it
    report_held_out({"held_out": result})
    printed = capsys.readouterr()
    assert printed.out.startswith(show_retrieval(result) + "\n")
    assert ("no better for sure" in printed.out) == (before is not None)
    assert ("try fewer --epochs or a lower --rate" in printed.err) == said


def test_what_is_no_better_is_not_written_and_a_model_is_replaced_only_when_asked(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = bundle(tmp_path / "small")[0]
    command = ["fit-pairs", pairs, "--from", folder, "--out", tmp_path / "run", "--export", tmp_path / "new"]
    command += ["--epochs", "1"]
    done = call(*command)
    assert done.exit_code == 1
    assert "no better for sure" in done.stdout
    assert_names(done.stderr, "not written", "no better for sure")
    assert not (tmp_path / "new").exists()
    # The run is kept: the model can be written without training again.
    again = ["fit", "--out", tmp_path / "run", "--resume", "--export", tmp_path / "new"]
    assert call(*again).exit_code == 1
    assert call(*again, "--anyway").exit_code == 0
    written = (tmp_path / "new" / "manifest.json").read_bytes()
    # The second run of the documents.
    assert_names(sentence(call(*command)), "holds a model", "--overwrite")
    assert (tmp_path / "new" / "manifest.json").read_bytes() == written
    done = call(*command, "--epochs", "2", "--overwrite", "--anyway")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "new" / "manifest.json").read_bytes() != written


def test_nothing_of_value_is_overwritten(pairs: Path, tmp_path: Path) -> None:
    folder, _, _ = bundle(tmp_path / "small")
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").write_text("x")
    begin = ["fit-pairs", pairs, "--from", folder, "--out", tmp_path / "run", "--export"]
    assert "not a folder but a file" in sentence(call(*begin, pairs))
    assert "holds other files than a bundle" in sentence(call(*begin, tmp_path / "papers"))
    assert "the bundle that training starts from" in sentence(call(*begin, folder))
    assert "no model 'nothing'" in sentence(call("fit-pairs", pairs, "--from", "nothing", "--out", tmp_path / "r"))
    assert not (tmp_path / "run").exists()
    assert call("fit-pairs", pairs, "--epochs", "1", "--out", tmp_path / "run").exit_code == 0
    assert "holds other files" in sentence(call("export", tmp_path / "run", "-o", tmp_path / "papers"))
    assert (tmp_path / "papers" / "thesis.txt").read_text() == "x"


def test_without_holding_out_there_is_no_report(pairs: Path, tmp_path: Path) -> None:
    result = call("fit-pairs", pairs, "--held-out", "0", "--epochs", "1", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "held-out" not in result.stdout
    record = load_run(tmp_path / "run").record
    assert "held_out" not in record
    assert record["pairs"] == 30
    assert record["command"] == "gramvec-train fit-pairs my.tsv --held-out 0.0 --epochs 1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nowhere.tsv"], "nowhere.tsv: no such file"),
        (["one.tsv"], "no usable row"),
        (["mixed.tsv", "--bad-rows", "refuse"], "mixed.tsv line 2: one column"),
        (["mixed.tsv", "--from", "no-such-model"], "no model 'no-such-model'"),
    ],
)
def test_bad_input_is_refused_before_torch_is_loaded(tmp_path: Path, options: list[str], said: str) -> None:
    (tmp_path / "one.tsv").write_text("alone\n")
    (tmp_path / "mixed.tsv").write_text("a man\ta human\nalone\n")
    assert said in refused_before_torch(tmp_path, "fit-pairs", *options)
    assert not (tmp_path / "runs").exists()
