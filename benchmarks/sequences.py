"""All encoders of the papers as they are served, beside their trainer's own forward pass: one table.

300 dimensions, the papers' architectures with random weights, real sentences: over words, over n-grams, or their first
characters for those that read characters. The peer is what a user writes in ten lines: the torch module over the same
features in calls of 512 texts. `whole_graph` is model.onnx alone, as another program would run it.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

import gramvec
from benchmarks.measure import Setting, interleaved
from benchmarks.results import Group, Part, Row
from gramvec.runtime.golden import differences
from gramvec.runtime.onnx import OnnxRuntime
from gramvec.text.spec import FeatureSpec
from gramvec_training.configuration import EncoderSettings
from gramvec_training.data import build_vocabulary
from gramvec_training.encoders import build_encoder, encoder_function
from gramvec_training.export import export_bundle

DIMENSION = 300
MOST_TEXTS = 1_024  # an LSTM takes a second for so many
CHARACTERS = 40
HALF_WIDTH = 0.05
WORDS, NGRAMS, LETTERS = FeatureSpec(orders=(), words=True), FeatureSpec(orders=(2, 3, 4)), FeatureSpec(orders=(1,))
ENCODERS: dict[str, tuple[FeatureSpec, dict[str, Any]]] = {
    "average of words (PARAGRAM-PHRASE, SIF)": (WORDS, {"kind": "bag", "pooling": "mean", "activation": "linear"}),
    "PP-proj": (WORDS, {"kind": "projection"}),
    "DAN": (WORDS, {"kind": "dan"}),
    "RNN": (WORDS, {"kind": "rnn"}),
    "iRNN": (WORDS, {"kind": "irnn"}),
    "LSTM, output gate": (WORDS, {"kind": "lstm"}),
    "LSTM, no output gate": (WORDS, {"kind": "lstm", "output_gate": False}),
    "CHARAGRAM": (NGRAMS, {"kind": "bag", "pooling": "sum", "activation": "tanh"}),
    "CHARAGRAM, two layers": (NGRAMS, {"kind": "two-layer"}),
    "charLSTM": (LETTERS, {"kind": "lstm"}),
    "charCNN, filters a": (LETTERS, {"kind": "char-cnn", "filters": "a"}),
    "charCNN, filters b": (LETTERS, {"kind": "char-cnn", "filters": "b"}),
}


def run(setting: Setting) -> Part:
    part = Part()
    torch.set_num_threads(1)
    rows = []
    for name, (spec, values) in ENCODERS.items():
        with part.failures_noted(name):
            rows.append(_measured(setting, name, spec, TypeAdapter(EncoderSettings).validate_python(values)))
    title = f"encoders of the papers, {DIMENSION} dimensions, one thread; ratio of served to torch"
    part.add(
        "encoders", Group(title, "texts a second of CPU time; parameters; difference of vectors from torch's", rows)
    )
    return part


def _measured(setting: Setting, name: str, spec: FeatureSpec, settings: EncoderSettings) -> Row:
    texts = [text[:CHARACTERS] if spec is LETTERS else text for text in setting.texts[:MOST_TEXTS]]
    vocabulary = build_vocabulary(texts, spec)
    generator = torch.Generator().manual_seed(1)
    table = torch.empty(len(vocabulary), DIMENSION).uniform_(-HALF_WIDTH, HALF_WIDTH, generator=generator)
    encoder = build_encoder(settings, table, DIMENSION, generator)
    with torch.no_grad():
        for parameter in encoder.dense().values():
            parameter.uniform_(-HALF_WIDTH, HALF_WIDTH, generator=generator)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bundle"
        export_bundle(
            path, name="bundle", kind="benchmark", spec=spec, vocabulary=vocabulary, encoder=encoder,
            parity_texts=texts[:64], provenance={}, card="",
        )  # fmt: skip
        embedder = gramvec.load(path, device="cpu", threads=1)
        featurizer, whole = embedder.bundle.featurizer, OnnxRuntime(path / "model.onnx", DIMENSION)
        torchs = encoder_function(encoder, featurizer)
        tasks = {
            "torch": lambda: torchs(texts),
            "whole_graph": lambda: [
                whole.run(featurizer(texts[start : start + 512])) for start in range(0, len(texts), 512)
            ],
            "served": lambda: embedder.embed(texts, normalize=False),
        }
        apart = differences(embedder.embed(texts, normalize=False), np.asarray(torchs(texts), np.float32))
        found = interleaved(tasks, len(texts), setting.rounds)
        embedder.close()
        whole.close()
    rates = {task: round(timing.per_cpu_second, 1) for task, timing in found.items()}
    return {
        "name": name,
        "rows_a_text": round(float(featurizer(texts).counts.mean()), 1),
        "parameters": sum(encoder.parameter_counts().values()),
        "difference": float(f"{apart.max(initial=0):.1e}"),
        **rates,
        "ratio": round(rates["served"] / rates["torch"], 3),
        "spread": round(max(timing.spread for timing in found.values()), 3),
    }
