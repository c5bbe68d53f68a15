"""The model card: README.md of a bundle, for people, from the record of its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SYSTEMS = {
    "charagram-phrase": "Character n-grams, summed (CHARAGRAM-PHRASE, Wieting et al., 2016).",
    "paragram-phrase": "Averaged word vectors (PARAGRAM-PHRASE, Wieting et al., 2016).",
    "gramvec": "Character n-grams and whole words in one table, summed; learned from a transformer's vectors.",
    "sif": "Averaged word vectors, weighted by rarity, less their common component (SIF, Arora et al., 2017).",
}
_LIMITS = {
    "charagram-phrase": [
        "The order of words hardly counts: only n-grams that cross a space see it.",
        "Negation and numbers change a vector little: a sentence and its denial are close.",
        "Words that look alike are drawn together even where they mean different things, unless training held them "
        "apart.",
        "Long texts add up many n-grams and saturate; it is made for phrases and sentences.",
    ],
    "paragram-phrase": [
        "The order of words does not count: the same words in any order have the same vector.",
        "All words outside the vocabulary share one vector, so misspelt and rare words lose their meaning.",
        "Negation and numbers change a vector little: a sentence and its denial are close.",
    ],
    "gramvec": [
        "The order of words hardly counts: only n-grams that cross a space see it.",
        "Negation and numbers change a vector little: a sentence and its denial are close.",
        "It knows what its teacher knows, and inherits the teacher's mistakes and biases.",
        "Long texts are a plain sum of many features; it is made for phrases and sentences.",
    ],
    "sif": [
        "The order of words does not count: the same words in any order have the same vector.",
        "Words outside the vocabulary are skipped; a text of such words alone is a zero vector, similar to nothing.",
        "The common component is that of the sentences named above; text of a quite different kind gains less.",
        "Negation and numbers change a vector little: a sentence and its denial are close.",
    ],
}


def write_card(record: Mapping[str, Any], *, name: str, precision: str, table_bytes: int) -> str:
    """Markdown: what the model is, its scores, data with licences, recipe and limits.

    `record` is a run's; `table_bytes` is the size of the stored table.
    """
    kind = str(record["kind"])
    dimension = record["config"]["model"]["dimension"]
    parts = [
        f"# {name}",
        f"{_SYSTEMS[kind]} English, lower-cased, {dimension} dimensions, {record['rows']:,} rows in {precision}, "
        f"a table of {table_bytes / 1e6:.1f} MB.",
        "Made by gramvec-train; manifest.json beside this file holds the settings in full.",
        *_scores(record["scores"]),
        *_data(record),
        "## How it was made",
        *_recipe(record),
        "## What it is bad at",
        "\n".join(f"- {line}" for line in [*_LIMITS[kind], "English alone: other languages were not trained on."]),
    ]
    return "\n\n".join(parts) + "\n"


def _scores(scores: Mapping[str, Any]) -> list[str]:
    if not scores["tasks"]:
        return ["## Scores", "No development set was scored."]
    rows = ["| task | sets | Pearson, mean | Spearman, mean | Pearson, pooled |", "|---|---|---|---|---|"]
    for task, result in scores["tasks"].items():
        mean, pooled = result["mean"], result["pooled"]["pearson"]
        rows.append(
            f"| {task} | {len(result['sets'])} | {mean['pearson']:.1f} | {mean['spearman']:.1f} | "
            f"{'-' if pooled is None else f'{pooled:.1f}'} |"
        )
    note = (
        "Cosine against human scores, times 100, on development sets, with the table in float32. Settings were "
        "chosen on these sets, which flatters them a little."
    )
    return ["## Scores", "\n".join(rows), note]


def _data(record: Mapping[str, Any]) -> list[str]:
    paired = record["data"]
    parts = ["## Data"]
    vectors = record.get("vectors")
    if vectors is not None:
        if "file" in vectors:
            parts.append(f"Word vectors: the file {vectors['file']}.")
        else:
            parts.append(f"Word vectors: those that {vectors['name']} learned from these pairs.")
        texts = [f"| {one['name']} | {one['licence']} | {one['texts']:,} |" for one in record["data"]]
        paired = vectors.get("data") or []
    if "teacher" in record:
        rows = [f"| {one['name']} | {one['licence']} | {one['texts']:,} |" for one in record["data"]]
        parts.append("Texts, each without a label, whose vectors the teacher gave:")
        parts.append("\n".join(["| set | licence | texts |", "|---|---|---|", *rows]))
        parts.append(f"And {record['spans']:,} short phrases cut from them.")
    elif paired:
        rows = [
            f"| {one['name']} | {one['licence']} | {one['groups']:,} | {one['pairs_per_epoch']:,} |" for one in paired
        ]
        parts.append("\n".join(["| set | licence | groups or pairs | pairs an epoch |", "|---|---|---|---|", *rows]))
    if vectors is not None:
        if texts:
            parts.append("The common component is that of sentences of:")
            parts.append("\n".join(["| set | licence | sentences |", "|---|---|---|", *texts]))
        frequencies = record["config"]["sif"]["frequencies"].rsplit("/", 1)[-1]
        parts.append(f"Word frequencies: {frequencies}.")
    return parts


def _recipe(record: Mapping[str, Any]) -> list[str]:
    model, training, sif, distillation = (
        record["config"].get(key) for key in ("model", "training", "sif", "distillation")
    )
    parts = [f"```\n{record['command']}\n```"]
    if training is not None:
        parts.append(
            f"Margin loss, margin {training['margin']}, {training['negatives'].upper()} negatives from batches of "
            f"{training['batch']} pairs; lazy Adam at {training['rate']:g}, decay {training['decay']}; "
            f"{record['steps']:,} steps, {record['pairs']:,} pairs, seed {training['seed']}; pooling "
            f"{model['pooling']}, activation {model['activation']}. L2 on the table {training['l2']:g}, towards "
            f"{'the initial values' if training['l2_centre'] == 'initial' else 'zero'}. "
            f"{record['seconds']:.0f} s on {record['device']} with {record['threads']} thread(s), "
            f"{record['pairs_per_second']:,} pairs a second."
        )
    if distillation is not None:
        teacher = record["teacher"]
        parts.append(
            f"Distilled from {teacher['model']} (sha256 {teacher['digest'][:12]}, {teacher['dimension']} dimensions, "
            f"{teacher['kept_by_projection']:.1%} of their squared length kept in {model['dimension']}): "
            f"1 - cosine to the teacher's vector, and {distillation['relation']:g} x the mean squared difference of "
            f"the batch's cosines; batches of {distillation['batch']:,} texts, lazy Adam at {distillation['rate']:g}, "
            f"decay {distillation['decay']}; {record['steps']:,} steps over {record['texts']:,} texts and "
            f"{record['misspelt_copies']:,} misspelt copies, seed {distillation['seed']}. "
            f"{record['seconds']:.0f} s on {record['device']} with {record['threads']} thread(s)."
        )
    if sif is not None:
        weights = f"a / (a + p(w)) with a = {sif['a']:g}" if sif["weighted"] else "1 for every word"
        parts.append(
            f"Weights {weights}; {sif['components']} common component(s) of {record['sentences']:,} sentences, "
            f"fixed in the model. {record['seconds']:.0f} s."
        )
    return parts
