"""Texts a second of encoders with layers and with order, served as bundles, against their trainer's own forward pass.

300 dimensions, the papers' architectures with random weights, real sentences: over words, or their first characters for
those that read characters. The peer is what a user writes in ten lines: the torch module over the same features in
calls of 512 texts. "In order of arrival" is the same graph without runtime/sequences.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from pydantic import TypeAdapter

import gramvec
from benchmarks.measure import Setting, interleaved, rates
from benchmarks.results import Part
from gramvec.features import FeatureSpec
from gramvec.runtime.onnx import OnnxRuntime
from gramvec_training.configuration import EncoderSettings
from gramvec_training.data import build_vocabulary
from gramvec_training.encoders import build_encoder, encoder_function
from gramvec_training.export import export_bundle

DIMENSION = 300
MOST_TEXTS = 1_024  # an LSTM takes a second for so many
CHARACTERS = 40
HALF_WIDTH = 0.05
ENCODERS = {
    "dan": {"kind": "dan"},
    "rnn": {"kind": "rnn"},
    "lstm": {"kind": "lstm"},
    "charlstm": {"kind": "lstm"},
    "charcnn": {"kind": "char-cnn"},
}


def run(setting: Setting) -> Part:
    part = Part()
    torch.set_num_threads(1)
    for name, values in ENCODERS.items():
        _measure(part, setting, name, TypeAdapter(EncoderSettings).validate_python(values))
    return part


def _measure(part: Part, setting: Setting, name: str, settings: EncoderSettings) -> None:
    characters = name.startswith("char")
    texts = [text[:CHARACTERS] if characters else text for text in setting.texts[:MOST_TEXTS]]
    spec = FeatureSpec(orders=(1,) if characters else (), words=not characters)
    vocabulary = build_vocabulary(texts, spec)
    generator = torch.Generator().manual_seed(1)
    table = torch.empty(len(vocabulary), DIMENSION).uniform_(-HALF_WIDTH, HALF_WIDTH, generator=generator)
    encoder = build_encoder(settings, table, DIMENSION, generator)
    with torch.no_grad():
        for parameter in encoder.dense().values():
            parameter.uniform_(-HALF_WIDTH, HALF_WIDTH, generator=generator)
    with TemporaryDirectory() as folder:
        export_bundle(
            Path(folder) / name, name=name, kind=name, spec=spec, vocabulary=vocabulary, encoder=encoder,
            parity_texts=texts[:64], provenance={}, card="",
        )  # fmt: skip
        embedder = gramvec.load(Path(folder) / name, device="cpu", threads=1)
        featuriser = embedder.bundle.featuriser
        tasks: dict[str, Callable[[], object]] = {"torch": lambda: encoder_function(encoder, featuriser)(texts)}
        if embedder.manifest.graph.composition == "sequence":
            plain = OnnxRuntime(embedder.bundle.graph_path, DIMENSION)
            tasks["ONNX Runtime, in order of arrival"] = lambda: [
                plain.run(featuriser(texts[start : start + 512])) for start in range(0, len(texts), 512)
            ]
        tasks["gramvec"] = lambda: embedder.embed(texts)
        found = interleaved(tasks, len(texts), setting.rounds)
        rows = featuriser(texts).counts.mean()
        title = f"{name}: {rows:.0f} rows a text, {DIMENSION} dimensions, one thread"
        part.add(f"sequences_{name}", rates(title, "texts", found, "torch"))
        embedder.close()
