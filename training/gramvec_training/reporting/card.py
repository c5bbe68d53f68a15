"""The model card: README.md of a bundle, for people, from the record of its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gramvec_training.reporting.families import number
from gramvec_training.reporting.systems import LIMITS, PAPER_CONFIGS, SYSTEMS
from gramvec_training.reporting.tables import markdown_table, share


def write_card(record: Mapping[str, Any], *, name: str, precision: str, table_bytes: int) -> str:
    """Markdown: what the model is, its scores, neighbours, data with licences, recipe and limits.

    `record` is a run's; with its key `evaluation` (see bundle_card.assess) every figure is of the finished bundle,
    else the scores are those that the trainer computed. `table_bytes` is the size of the stored table.
    """
    kind = str(record["kind"])
    evaluation = record.get("evaluation")
    dimension = record.get("dimension") or record["config"]["model"]["dimension"]
    size = f"a table of {table_bytes / 1e6:.1f} MB"
    if evaluation is not None:
        size += f", {evaluation['bytes'] / 1e6:.1f} MB in all to serve it"
    parts = [
        f"# {name}",
        f"{SYSTEMS[kind]} English, lower-cased, {dimension} dimensions, {record['rows']:,} rows in {precision}, "
        f"{size}.",
        *_not_the_papers(record),
        "Made by gramvec-train; manifest.json beside this file holds the settings in full.",
        *_scores(record.get("scores") if evaluation is None else evaluation, of_bundle=evaluation is not None),
        *(_typos(evaluation, name) if evaluation and evaluation.get("typos") else []),
        *(_neighbours(evaluation["neighbours"]) if evaluation else []),
        *_data(record),
        "## How it was made",
        *_recipe(record),
        "## What it is bad at",
        "\n".join(f"- {line}" for line in [*LIMITS[kind], "English alone: other languages were not trained on."]),
    ]
    return "\n\n".join(parts) + "\n"


def _not_the_papers(record: Mapping[str, Any]) -> list[str]:
    """Where a system of the papers was learned otherwise than there: that it was, and what would be the papers' way."""
    kind = str(record["kind"])
    taught = record.get("teacher") or (record.get("vectors") or {}).get("teacher")
    if not taught or kind not in PAPER_CONFIGS:
        return []
    what = "word vectors" if kind == "sif" else "weights"
    return [
        f"The architecture is the paper's. The {what} are not: they were learned from a teacher, {taught['model']}, so "
        "these scores stand for this model and not for the paper's. The paper's own training is one command, on the "
        f"paper's data: `gramvec-train fit training/configs/{PAPER_CONFIGS[kind]}.toml`."
    ]


def _scores(scores: Mapping[str, Any] | None, *, of_bundle: bool) -> list[str]:
    if not scores or not scores["tasks"]:
        return ["## Scores", "No development set was scored."]
    tasks = [["task", "sets", "Pearson, mean", "Spearman, mean", "Pearson, pooled", "Spearman, pooled"]]
    sets = [["set", "pairs", "Pearson", "Spearman"]]
    for task, result in scores["tasks"].items():
        values = [result[how][measure] for how in ("mean", "pooled") for measure in ("pearson", "spearman")]
        tasks.append([task, str(len(result["sets"])), *(number(value) for value in values)])
        for one, found in result["sets"].items():
            values = [found["pearson"], found["spearman"]]
            sets.append([f"{task}/{one}", f"{found['pairs']:,}", *(number(value) for value in values)])
    origin = "of this bundle as it is served" if of_bundle else "of the trainer, with the table in float32"
    note = (
        f"Cosine against human scores, times 100, on development sets, {origin}. Settings were chosen on these "
        "sets, which flatters them a little."
    )
    parts = ["## Scores", markdown_table(tasks), note, markdown_table(sets)]
    return [*parts, *_coverage(scores["coverage"])] if "coverage" in scores else parts


def _coverage(coverage: Mapping[str, Any]) -> list[str]:
    rows = [["task", "texts", "n-grams known", "words known", "texts of which nothing is known"]]
    for task, one in coverage.items():
        known = [share(one["ngrams_known"]), share(one["words_known"])]
        rows.append([task, f"{one['texts']:,}", *known, f"{one['texts_unknown']:,}"])
    return ["How much of these texts it knows, counting every occurrence:", markdown_table(rows)]


def _typos(evaluation: Mapping[str, Any], name: str) -> list[str]:
    percentages = list(evaluation["typos"])
    models = [(name, evaluation)]
    if "beside" in evaluation:
        models.append((evaluation["beside"]["name"], evaluation["beside"]))
    rows = [["task", "model", "clean", *(f"{one} % misspelt" for one in percentages)]]
    for task in next(iter(evaluation["typos"].values())):
        for label, one in models:
            found = [one["tasks"], *(one["typos"][percentage] for percentage in percentages)]
            rows.append([task, label, *(number(result[task]["mean"]["pearson"]) for result in found)])
    files = evaluation.get("misspellings") or []
    real = f", real misspellings ({', '.join(files)})" if files else ""
    note = (
        "Pearson, mean of the task's sets, with so many of the words of three letters and more misspelt on both "
        f"sides: neighbouring keys, transpositions, deletions, insertions{real}, each as likely; seed "
        f"{evaluation['seed']}. Sets of single words are left out."
    )
    return ["## Misspelt text", markdown_table(rows), note]


def _neighbours(neighbours: Mapping[str, Any]) -> list[str]:
    def rows(title: str, found: Mapping[str, list[str]]) -> str:
        lines = [[query, ", ".join(texts) or "none: nothing of it is known"] for query, texts in found.items()]
        return markdown_table([[title, "nearest by cosine, the nearest first"], *lines], left=True)

    note = (
        f"Among {neighbours['candidates']:,} words of {neighbours['origin']}. The words and phrases are those of "
        "Tables 8 and 9 of the CHARAGRAM paper, and one misspelling more."
    )
    words, phrases = rows("word", neighbours["words"]), rows("phrase", neighbours["phrases"])
    return ["## Nearest neighbours", words, phrases, note]


def _data(record: Mapping[str, Any]) -> list[str]:
    vectors = record.get("vectors")
    if vectors is None:
        return ["## Data", *_learned_from(record)]
    parts = ["## Data"]
    if "file" in vectors:
        parts.append(f"Word vectors: the file {vectors['file']}.")
    else:
        parts += [f"Word vectors: those that {vectors['name']} learned.", *_learned_from(vectors)]
    if record["data"]:
        parts += ["The common component is that of sentences of:", _texts_table(record["data"], "sentences")]
    frequencies = record["config"]["sif"]["frequencies"].rsplit("/", 1)[-1]
    return [*parts, f"Word frequencies: {frequencies}."]


def _learned_from(record: Mapping[str, Any]) -> list[str]:
    if record.get("teacher"):
        parts = ["Texts, each without a label, whose vectors the teacher gave:", _texts_table(record["data"], "texts")]
        return [*parts, f"And {record['spans']:,} short phrases cut from them."] if record.get("spans") else parts
    rows = [
        f"| {one['name']} | {one['licence']} | {one['groups']:,} | {one['pairs_per_epoch']:,} |"
        for one in record.get("data") or []
    ]
    return (
        ["\n".join(["| set | licence | groups or pairs | pairs an epoch |", "|---|---|---|---|", *rows])]
        if rows
        else []
    )


def _texts_table(sets: Sequence[Mapping[str, Any]], what: str) -> str:
    rows = [f"| {one['name']} | {one['licence']} | {one['texts']:,} |" for one in sets]
    return "\n".join([f"| set | licence | {what} |", "|---|---|---|", *rows])


def _recipe(record: Mapping[str, Any]) -> list[str]:
    model, training, sif, distillation = (
        record["config"].get(key) for key in ("model", "training", "sif", "distillation")
    )
    parts = [f"```\n{record['command']}\n```"]
    start = record.get("start")
    if start is not None:
        parts.append(
            f"Training went on from the model {start['name']} (licence {start['licence'] or 'not stated'}; manifest "
            f"sha256 {start['digest'][:12]}), {_origin(start)}."
        )
    if training is not None:
        parts.append(
            f"Margin loss, margin {training['margin']}, {training['negatives'].upper()} negatives from "
            f"{_batches(training)}; lazy {_optimiser(training)} at {training['rate']:g}, decay {training['decay']}; "
            f"{record['steps']:,} steps, {record['pairs']:,} pairs, seed {training['seed']}; "
            f"{_composition(record['config'])}. L2 on the table {training['l2']:g}, towards "
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
        if spelling := distillation.get("spelling"):
            parts.append(
                f"Beside the texts {record['misspelt_words']:,} words, each step {spelling['groups']} of them and "
                f"those that are spelt alike: {spelling['weight']:g} x the cross-entropy of which one was meant, "
                f"by cosines over {spelling['temperature']:g}."
            )
    shape = record.get("export", {})
    if shape.get("scales"):
        names = {"word": "words"} | {order: f"n-grams of {order}" for order in "123456"}
        kinds = ", ".join(f"{names[kind]} x {scale:g}" for kind, scale in shape["scales"].items())
        parts.append(f"Rows scaled at export, by factors chosen on the development sets: {kinds}.")
    if shape.get("whitening"):
        parts.append(f"Whitened by {shape['whitening']:g} at export (0 is none, 1 is full).")
    if sif is not None:
        weights = {
            "sif": f"a / (a + p(w)) with a = {sif['a']:g}",
            "idf": "log((1 + N) / (1 + N_w))",
            "none": "1 for every word",
        }[sif.get("weights") or ("sif" if sif["weighted"] else "none")]  # older records say weighted
        parts.append(
            f"Weights {weights}; {sif['components']} common component(s) of {record['sentences']:,} sentences, "
            f"fixed in the model. {record['seconds']:.0f} s."
        )
    return parts


def _origin(start: Mapping[str, Any]) -> str:
    teacher = start.get("teacher")
    if teacher is None:
        return "whose own data is in its card"
    return (
        f"which was distilled from {teacher['model']} (sha256 {teacher['digest'][:12]}) in {start['steps']:,} steps "
        f"over {start['texts']:,} texts, {start['seconds']:.0f} s"
    )


def _batches(training: Mapping[str, Any]) -> str:
    batches = training.get("mega_batch", 1)
    among = f"{batches} batches" if batches > 1 else "batches"
    return f"{among} of {training['batch']} pairs"


def _composition(config: Mapping[str, Any]) -> str:
    encoder = config.get("encoder")
    if encoder is None:
        return f"pooling {config['model']['pooling']}, activation {config['model']['activation']}"
    settings = [f"{name} {value}" for name, value in encoder.items() if name != "kind"]
    return ", ".join([f"encoder {encoder['kind']}", *settings])


def _optimiser(training: Mapping[str, Any]) -> str:
    return {"adam": "Adam", "adagrad": "AdaGrad", "sgd": "SGD"}[training.get("optimiser", "adam")]
