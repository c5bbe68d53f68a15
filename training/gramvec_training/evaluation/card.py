"""Model cards: the figures computed through the bundle, and the Markdown of the card."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from gramvec.bundle.bundle import rewrite_manifest, stage_folder
from gramvec.bundle.manifest import GRAPH, Manifest
from gramvec.bundle.resolve import MANIFEST
from gramvec.embed.embedder import Embedder
from gramvec.errors import BundleError, InputError
from gramvec.explain.neighbors import find_nearest_words
from gramvec_training.evaluation.backend import Typos, evaluate_models, serve_model
from gramvec_training.evaluation.report import format_markdown_table, format_score, format_share
from gramvec_training.evaluation.similarity import PHRASES, WORDS, SimilaritySet
from gramvec_training.systems import System, describe_system


def write_card(record: Mapping[str, Any], *, name: str, precision: str, table_bytes: int) -> str:
    """Return the card as Markdown: model, scores, neighbors, data with licenses, recipe and limits.

    `record` is a run's; with its key `evaluation` (see bundle_card.assess) every figure is of the finished bundle,
    else the scores are those that the trainer computed. `table_bytes` is the size of the stored table.
    """
    system = describe_system(str(record["kind"]))
    evaluation = record.get("evaluation")
    dimension = record.get("dimension") or record["config"]["model"]["dimension"]
    size = f"a table of {table_bytes / 1e6:.1f} MB"
    if evaluation is not None:
        size += f", {evaluation['bytes'] / 1e6:.1f} MB in all to serve it"
    parts = [
        f"# {name}",
        f"{system.about} English, lower-cased, {dimension} dimensions, {record['rows']:,} rows in {precision}, {size}.",
        *_not_the_papers(record, system),
        "Made by gramvec-train; manifest.json beside this file holds the settings in full.",
        *_scores(record.get("scores") if evaluation is None else evaluation, of_bundle=evaluation is not None),
        *(_typos(evaluation, name) if evaluation and evaluation.get("typos") else []),
        *(_neighbors(evaluation["neighbors"]) if evaluation else []),
        *_data(record),
        "## How it was made",
        *_recipe(record),
        "## What it is bad at",
        "\n".join(f"- {line}" for line in [*system.limits, "English alone: other languages were not trained on."]),
    ]
    return "\n\n".join(parts) + "\n"


def _not_the_papers(record: Mapping[str, Any], system: System) -> list[str]:
    """Return a note where a system was trained otherwise than in its paper, with the paper's config."""
    taught = record.get("teacher") or (record.get("vectors") or {}).get("teacher")
    if not taught or system.paper_config is None:
        return []
    what = "word vectors" if record["kind"] == "sif" else "weights"
    return [
        f"The architecture is the paper's. The {what} are not: they were learned from a teacher, {taught['model']}, so "
        "these scores stand for this model and not for the paper's. The paper's own training is one command, on the "
        f"paper's data: `gramvec-train fit training/configs/papers/{system.paper_config}.toml`."
    ]


def _scores(scores: Mapping[str, Any] | None, *, of_bundle: bool) -> list[str]:
    if not scores or not scores["tasks"]:
        return ["## Scores", "No development set was scored."]
    tasks = [["task", "sets", "Pearson, mean", "Spearman, mean", "Pearson, pooled", "Spearman, pooled"]]
    sets = [["set", "pairs", "Pearson", "Spearman"]]
    for task, result in scores["tasks"].items():
        values = [result[how][measure] for how in ("mean", "pooled") for measure in ("pearson", "spearman")]
        tasks.append([task, str(len(result["sets"])), *(format_score(value) for value in values)])
        for name, scores_of_set in result["sets"].items():
            values = [scores_of_set["pearson"], scores_of_set["spearman"]]
            sets.append([f"{task}/{name}", f"{scores_of_set['pairs']:,}", *(format_score(value) for value in values)])
    origin = "of this bundle as it is served" if of_bundle else "of the trainer, with the table in float32"
    note = (
        f"Cosine against human scores, times 100, on development sets, {origin}. Settings were chosen on these "
        "sets, which flatters them a little."
    )
    parts = ["## Scores", format_markdown_table(tasks), note, format_markdown_table(sets)]
    return [*parts, *_coverage(scores["coverage"])] if "coverage" in scores else parts


def _coverage(coverage: Mapping[str, Any]) -> list[str]:
    rows = [["task", "texts", "n-grams known", "words known", "texts of which nothing is known"]]
    for task, counts in coverage.items():
        known = [format_share(counts["ngrams_known"]), format_share(counts["words_known"])]
        rows.append([task, f"{counts['texts']:,}", *known, f"{counts['texts_unknown']:,}"])
    return ["How much of these texts it knows, counting every occurrence:", format_markdown_table(rows)]


def _typos(evaluation: Mapping[str, Any], name: str) -> list[str]:
    percentages = list(evaluation["typos"])
    models = [(name, evaluation)]
    if "beside" in evaluation:
        models.append((evaluation["beside"]["name"], evaluation["beside"]))
    rows = [["task", "model", "clean", *(f"{percentage} % misspelt" for percentage in percentages)]]
    for task in next(iter(evaluation["typos"].values())):
        for label, scores in models:
            tasks_by_noise = [scores["tasks"], *(scores["typos"][percentage] for percentage in percentages)]
            rows.append([task, label, *(format_score(result[task]["mean"]["pearson"]) for result in tasks_by_noise)])
    files = evaluation.get("misspellings") or []
    real = f", real misspellings ({', '.join(files)})" if files else ""
    note = (
        "Pearson, mean of the task's sets, with so many of the words of three letters and more misspelt on both "
        f"sides: neighboring keys, transpositions, deletions, insertions{real}, each as likely; seed "
        f"{evaluation['seed']}. Sets of single words are left out."
    )
    return ["## Misspelt text", format_markdown_table(rows), note]


def _neighbors(neighbors: Mapping[str, Any]) -> list[str]:
    def rows(title: str, texts_by_query: Mapping[str, list[str]]) -> str:
        lines = [[query, ", ".join(texts) or "none: nothing of it is known"] for query, texts in texts_by_query.items()]
        return format_markdown_table([[title, "nearest by cosine, the nearest first"], *lines], left=True)

    note = (
        f"Among {neighbors['candidates']:,} words of {neighbors['origin']}. The words and phrases are those of "
        "Tables 8 and 9 of the CHARAGRAM paper, and one misspelling more."
    )
    words, phrases = rows("word", neighbors["words"]), rows("phrase", neighbors["phrases"])
    return ["## Nearest neighbors", words, phrases, note]


def _data(record: Mapping[str, Any]) -> list[str]:
    vectors = record.get("vectors")
    if vectors is None:
        return ["## Data", *_describe_origin(record)]
    parts = ["## Data"]
    if "file" in vectors:
        parts.append(f"Word vectors: the file {vectors['file']}.")
    else:
        parts += [f"Word vectors: those that {vectors['name']} learned.", *_describe_origin(vectors)]
    if record["data"]:
        parts += ["The common component is that of sentences of:", _texts_table(record["data"], "sentences")]
    frequencies = record["config"]["sif"]["frequencies"].rsplit("/", 1)[-1]
    return [*parts, f"Word frequencies: {frequencies}."]


def _describe_origin(record: Mapping[str, Any]) -> list[str]:
    if record.get("teacher"):
        parts = ["Texts, each without a label, whose vectors the teacher gave:", _texts_table(record["data"], "texts")]
        return [*parts, f"And {record['spans']:,} short phrases cut from them."] if record.get("spans") else parts
    rows = [
        f"| {source['name']} | {source['license']} | {source['groups']:,} | {source['pairs_per_epoch']:,} |"
        for source in record.get("data") or []
    ]
    return (
        ["\n".join(["| set | license | groups or pairs | pairs an epoch |", "|---|---|---|---|", *rows])]
        if rows
        else []
    )


def _texts_table(sets: Sequence[Mapping[str, Any]], what: str) -> str:
    rows = [f"| {source['name']} | {source['license']} | {source['texts']:,} |" for source in sets]
    return "\n".join([f"| set | license | {what} |", "|---|---|---|", *rows])


def _recipe(record: Mapping[str, Any]) -> list[str]:
    model, training, sif, distillation = (
        record["config"].get(key) for key in ("model", "training", "sif", "distillation")
    )
    parts = [f"```\n{record['command']}\n```"]
    start = record.get("start")
    if start is not None:
        parts.append(
            f"Training went on from the model {start['name']} (license {start['license'] or 'not stated'}; manifest "
            f"sha256 {start['digest'][:12]}), {_origin(start)}."
        )
    if training is not None:
        parts.append(
            f"{_objective(record['config'])}; lazy {_optimizer(training)} at {training['rate']:g}, decay "
            f"{training['decay']}; {record['steps']:,} steps, {record['pairs']:,} pairs, seed {training['seed']}; "
            f"{_composition(record['config'])}. L2 on the table {training['l2']:g}, towards "
            f"{'the initial values' if training['l2_center'] == 'initial' else 'zero'}. "
            f"{record['seconds']:.0f} s on {record['device']} with {record['threads']} thread(s), "
            f"{record['pairs_per_second']:,} pairs a second."
        )
    if distillation is not None:
        teacher = record["teacher"]
        parts.append(
            f"Distilled from {teacher['model']} (sha256 {teacher['digest'][:12]}, {teacher['dimension']} dimensions, "
            f"{teacher['kept_by_projection']:.1%} of their squared length kept in {model['dimension']}): "
            f"{_teacher_loss(record['config'])}; batches of {distillation['batch']:,} texts, "
            f"lazy Adam at {distillation['rate']:g}, decay {distillation['decay']}; {record['steps']:,} steps over "
            f"{record['texts']:,} texts and "
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
        }[sif["weights"]]
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


def _objective(config: Mapping[str, Any]) -> str:
    training, objective = config["training"], config.get("objective")
    batches = training.get("mega_batch", 1)
    among = f"{batches} batches" if batches > 1 else "batches"
    pairs = f"{among} of {training['batch']} pairs"
    if objective is None or objective["kind"] == "margin":
        return f"Margin loss, margin {training['margin']}, {training['negatives'].upper()} negatives from {pairs}"
    return f"{_list_settings('Objective', objective)}, {pairs}"


def _teacher_loss(config: Mapping[str, Any]) -> str:
    relation, objective = config["distillation"]["relation"], config.get("objective")
    if objective is None or objective["kind"] in ("teacher", "spelling"):
        return (
            f"1 - cosine to the teacher's vector, and {relation:g} x the mean squared difference of the batch's cosines"
        )
    return _list_settings("objective", objective)


def _composition(config: Mapping[str, Any]) -> str:
    encoder = config.get("encoder")
    if encoder is None:
        return f"pooling {config['model']['pooling']}, activation {config['model']['activation']}"
    return _list_settings("encoder", encoder)


def _list_settings(what: str, section: Mapping[str, Any]) -> str:
    settings = [f"{name} {value}" for name, value in section.items() if name != "kind"]
    return ", ".join([f"{what} {section['kind']}", *settings])


def _optimizer(training: Mapping[str, Any]) -> str:
    return {"adam": "Adam", "adagrad": "AdaGrad", "sgd": "SGD"}[training.get("optimizer", "adam")]


CARD = "README.md"
NEIGHBORS = 6
_TABLE = f"{GRAPH}.data"
_FOR_PEOPLE = (CARD,)


@dataclass(frozen=True)
class Candidates:
    """Words among which neighbors are sought, and a short description of their source."""

    words: Sequence[str]
    origin: str


def assess(
    embedder: Embedder,
    beside: Embedder | None,
    sets: Sequence[SimilaritySet],
    typos: Typos,
    candidates: Candidates,
) -> dict[str, Any]:
    """Compute all figures of a card through the bundle; return JSON values."""
    models = [embedder] if beside is None else [embedder, beside]
    labels = [str(index) for index in range(len(models))]
    reports = evaluate_models([serve_model(model) for model in models], labels, sets, typos)
    assessed: dict[str, Any] = {
        key: reports["0"][key] for key in ("tasks", "notes", "coverage", "typos") if key in reports["0"]
    }
    if beside is not None:
        kept = {key: reports["1"][key] for key in ("name", "digest", "tasks", "typos") if key in reports["1"]}
        assessed["beside"] = kept
    nearest = find_nearest_words(embedder, [*WORDS, *PHRASES], candidates.words, k=NEIGHBORS)
    named = [[text for text, _ in neighbors] for neighbors in nearest]
    return {
        **assessed,
        "seed": typos.seed,
        "neighbors": {
            "candidates": len(candidates.words),
            "origin": candidates.origin,
            "words": dict(zip(WORDS, named[: len(WORDS)], strict=True)),
            "phrases": dict(zip(PHRASES, named[len(WORDS) :], strict=True)),
        },
        "bytes": sum(file.bytes for name, file in embedder.manifest.files.items() if name not in _FOR_PEOPLE),
        "device": embedder.device,
        "versions": {name: version(name) for name in ("gramvec", "numpy")},
    }


def renew(embedder: Embedder, evaluation: Mapping[str, Any]) -> Manifest:
    """Replace the bundle's card and manifest, whole or not at all; every other file keeps its bytes.

    The evaluation takes the place of the trainer's own scores in the manifest's provenance.

    Raises:
        InputError: The bundle does not say how it was made.
        BundleError: Its folder holds what its manifest does not list.
    """
    manifest = embedder.manifest
    check_renewable(embedder)
    provenance = {key: value for key, value in manifest.provenance.items() if key != "scores"}
    provenance["evaluation"] = dict(evaluation)
    card = write_card(
        {"kind": manifest.kind, **provenance},
        name=manifest.name,
        precision=manifest.graph.precision,
        table_bytes=manifest.files.get(_TABLE, manifest.files[GRAPH]).bytes,  # a tiny table lies in the graph
    )
    try:
        return _seal(embedder, provenance, card)
    except OSError as error:
        raise BundleError(
            f"{embedder.bundle.path}: cannot be replaced ({error.strerror}); make it and the folder above writable"
        ) from error


def check_renewable(embedder: Embedder) -> None:
    """Raise what `renew` would raise, before anything is scored."""
    manifest, path = embedder.manifest, embedder.bundle.path
    missing = [key for key in ("config", "command", "data", "rows") if key not in manifest.provenance]
    if missing:
        raise InputError(f"{path}: no record of how it was made; export it with gramvec-train export first")
    strange = sorted({file.name for file in path.iterdir()} - {MANIFEST, CARD, *manifest.files})
    if strange:
        raise BundleError(f"{path / strange[0]}: not a file of the bundle; move it elsewhere")


def _seal(embedder: Embedder, provenance: dict[str, Any], card: str) -> Manifest:
    bundle, manifest = embedder.bundle, embedder.manifest
    path = bundle.path.resolve()
    with stage_folder(path) as stage:
        for name in manifest.files:
            if name != CARD:
                shutil.copyfile(path / name, stage / name)
        (stage / CARD).write_text(card, encoding="utf-8")
        renewed = rewrite_manifest(stage, manifest, provenance=provenance)
        changed = [name for name, entry in manifest.files.items() if name != CARD and renewed.files[name] != entry]
        if changed:
            raise BundleError(f"{path / changed[0]}: changed while it was copied; copy or export the model again")
    return renewed
