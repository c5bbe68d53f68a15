"""Texts to features: the compiled pass against the numpy pass, 512 texts a call, and one text a call."""

from __future__ import annotations

from benchmarks.latency import percentiles
from benchmarks.measure import Setting, interleaved, rates
from benchmarks.results import Group, Part, Row
from gramvec.bundle import open_bundle
from gramvec.features import Featuriser


def run(setting: Setting) -> Part:
    part, texts, blocks = Part(), setting.texts, setting.blocks()
    bundle = open_bundle(setting.model)
    compiled = Featuriser(bundle.spec, bundle.vocabulary, compiled=True)
    plain = Featuriser(bundle.spec, bundle.vocabulary, compiled=False)
    ways = {"numpy": plain, "compiled": compiled}
    if bundle.memoised is not bundle.featuriser:
        ways["compiled, with the memo"] = bundle.memoised
    tasks = {name: lambda way=way: [way(block) for block in blocks] for name, way in ways.items()}
    timings = interleaved(tasks, len(texts), setting.rounds)
    mean = sum(map(len, texts)) / len(texts)
    title = f"features: {mean:.0f} characters a text, 512 texts a call, one thread"
    part.add("features", rates(title, "texts", timings, "numpy"))
    single = {name: lambda text, way=way: way([text]) for name, way in ways.items()}
    part.add("features_one_text", percentiles("features: one text a call", single, texts, setting.rounds, "numpy"))
    rows = [_rows("without a memo", compiled, texts), _rows("as served", bundle.memoised, texts)]
    part.add("features_rows", Group("features: rows of the table summed", "rows a text", rows))
    return part


def _rows(name: str, featuriser: Featuriser, texts: list[str]) -> Row:
    counts = featuriser(texts).counts
    return {"name": name, "mean": round(float(counts.mean()), 1), "max": int(counts.max())}
