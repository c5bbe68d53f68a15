"""Texts to features: the compiled pass against the numpy pass, 512 texts a call, and one text a call."""

from __future__ import annotations

from benchmarks.embedder import percentiles
from benchmarks.measure import Setting, interleaved, rates
from benchmarks.results import Group, Part, Row
from gramvec.bundle.bundle import open_bundle
from gramvec.features.featurizer import Featurizer
from gramvec.text.memo import Memo


def run(setting: Setting) -> Part:
    part, texts, blocks = Part(), setting.texts, setting.blocks()
    bundle = open_bundle(setting.model)
    memo = bundle.memoized.memo
    each = bundle.featurizer
    ways = {"numpy": Featurizer(bundle.spec, bundle.vocabulary, compiled=False, memo=memo), "compiled": bundle.memoized}
    if memo is not None:
        ways["compiled, every n-gram by itself"] = each
    tasks = {name: lambda way=way: [way(block) for block in blocks] for name, way in ways.items()}
    timings = interleaved(tasks, len(texts), setting.rounds)
    mean = sum(map(len, texts)) / len(texts)
    title = f"features: {mean:.0f} characters a text, 512 texts a call, one thread"
    part.add("features", rates(title, "texts", timings, "numpy"))
    single = {name: lambda text, way=way: way([text]) for name, way in ways.items()}
    part.add("features_one_text", percentiles("features: one text a call", single, texts, setting.rounds, "numpy"))
    rows = [_rows("every n-gram by itself", each, texts)]
    if memo is not None:
        longest = Featurizer(bundle.spec, bundle.vocabulary, memo=Memo.build([], bundle.vocabulary))
        rows.append(_rows("suffixes held by the longest", longest, texts))
    rows.append(_rows("as served", bundle.memoized, texts))
    part.add("features_rows", Group("features: rows of the table summed", "rows a text", rows))
    return part


def _rows(name: str, featurizer: Featurizer, texts: list[str]) -> Row:
    counts = featurizer(texts).counts
    return {"name": name, "mean": round(float(counts.mean()), 1), "max": int(counts.max())}
