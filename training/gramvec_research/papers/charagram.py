"""CHARAGRAM (Wieting et al., 2016a): its tables and figures over open data, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import gramvec
from gramvec.embed.embedder import Embedder
from gramvec.errors import BundleError, InputError
from gramvec.explain.neighbors import find_nearest_words, nearest_ngrams
from gramvec_research import tagging
from gramvec_research.shared import (
    OTHER_SETS,
    Drawing,
    Experiment,
    ExperimentInputs,
    Finding,
    Item,
    Paper,
    ResultRow,
    ResultTable,
    learn_run,
    list_values,
    tasks_of,
)
from gramvec_research.sweep import TABLE_5_ORDERS, TABLE_5_SIZES, spell_orders
from gramvec_research.systems import COMPARED, LENGTHS, count_longer_words, models_of, score_bins
from gramvec_training.encoders.build import build_encoder
from gramvec_training.encoders.char_cnn import CharCnnSettings
from gramvec_training.encoders.recurrent import IrnnSettings, LstmSettings, RnnSettings
from gramvec_training.evaluation.backend import ScoredModel
from gramvec_training.evaluation.report import list_scores_over_steps
from gramvec_training.evaluation.similarity import PHRASES, correlate, find_sets, list_candidate_words
from gramvec_training.sections import BagSettings, EncoderSettings

_BATCH = 50
_TRAINING = {"batch": _BATCH, "epochs": 4, "decay": "none"}
_SYSTEMS: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "CHARAGRAM": (
        "charagram-phrase", {"orders": [2, 3, 4]}, {"kind": "bag", "activation": "linear"}, {"negatives": "max"},
    ),
    "charCNN": (
        "charcnn", {"orders": [1]},
        {"kind": "char-cnn", "filters": "a", "filter_activation": "linear", "activation": "linear"},
        {"negatives": "mix", "cosine_epsilon": 1e-4, "l2": 1e-6, "l2_composition": 1e-6},
    ),
    "charLSTM": (
        "charlstm", {"orders": [1]}, {"kind": "lstm"},
        {"negatives": "mix", "cosine_epsilon": 1e-6, "l2": 1e-6, "l2_composition": 1e-6},
    ),
}  # fmt: skip
_WIDE = 100
_SCALES, _FILTERS = (0.25, 0.5, 1.0), 525  # of filter set A
WORDS = [{"path": "ppdb_xl_lexical.pairs.tsv.gz", "max_groups": 60_000}]
# Table 1, SL999 and WS353, each tuned on the same.
_PAPER = {"CHARAGRAM": (63.33, 58.35), "charCNN": (30.64, 33.19), "charLSTM": (54.54, 51.43)}
_EARLY, _LATE = 1, 3  # the quarters of an epoch that are compared: half an epoch, and a whole


def score_word_curves(inputs: ExperimentInputs) -> ResultTable:
    """Make Figure 1: Spearman, mean over the sets of words and over seeds, each quarter of an epoch."""
    curves = {name: np.mean([_curve(inputs, name, seed) for seed in inputs.seeds], axis=0) for name in _SYSTEMS}
    steps = _curve(inputs, "CHARAGRAM", inputs.seeds[0])
    rows: list[ResultRow] = [
        {"pairs": int(curves["CHARAGRAM"][index][0]) * _BATCH}
        | {name: round(float(points[index][1]), 1) for name, points in curves.items()}
        for index in range(len(steps))
    ]
    late = {name: float(curves[name][_LATE][1]) for name in ("charCNN", "charLSTM")}
    first = float(curves["CHARAGRAM"][_EARLY][1])
    seen = f"CHARAGRAM {first:.1f}; {list_values(late)}"
    claim = "CHARAGRAM after half an epoch is above the others after one"
    return ResultTable(tuple(rows), (Finding(claim, first > max(late.values()), seen),))


def score_word_similarity(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 1: Spearman on each set of words after the last epoch, mean over seeds."""
    rows: list[ResultRow] = []
    mean: dict[str, float] = {}
    for name in _SYSTEMS:
        records = [_learn_run(inputs, name, seed) for seed in inputs.seeds]
        row: dict[str, str | float | None] = {"system": name}
        sets = [record["scores"]["tasks"] for record in records]
        for task, scores in sets[0].items():
            for which in scores["sets"]:
                row[which] = round(float(np.mean([tasks[task]["sets"][which]["spearman"] or 0 for tasks in sets])), 1)
        mean[name] = float(np.mean([list(tasks_of(record, "spearman").values()) for record in records]))
        rows.append({**row, "SL999, paper": _PAPER[name][0], "WS353, paper": _PAPER[name][1]})
    best = max(mean, key=lambda name: mean[name])
    claims = {
        "CHARAGRAM is above charLSTM and charCNN": best == "CHARAGRAM",
        "charLSTM is above charCNN": mean["charLSTM"] > mean["charCNN"],
    }
    return ResultTable(tuple(rows), tuple(Finding(claim, holds, list_values(mean)) for claim, holds in claims.items()))


def score_filters(inputs: ExperimentInputs) -> ResultTable:
    """Try section 4.1: charCNN with more filters, Spearman, mean over sets of words and seeds."""
    scores = {}
    for scale in _SCALES:
        changes = {} if scale == 1 else {"scale": scale}
        records = [_learn_run(inputs, "charCNN", seed, **changes) for seed in inputs.seeds]
        scores[scale] = float(np.mean([list(tasks_of(record, "spearman").values()) for record in records]))
    rows: tuple[ResultRow, ...] = tuple(
        {"filters": round(_FILTERS * scale), "spearman": round(score, 1)} for scale, score in scores.items()
    )
    rising = all(fewer < more for fewer, more in pairwise(scores.values()))
    seen = ", ".join(f"{score:.1f}" for score in scores.values())
    return ResultTable(rows, (Finding("more filters are better", rising, seen),))


def _learn_run(inputs: ExperimentInputs, name: str, seed: int, **changes_of_encoder: float) -> dict[str, Any]:
    kind, features, encoder, changes = _SYSTEMS[name]
    initial = "glorot" if kind == "charagram-phrase" else "rows"
    settings = {
        "model": {"kind": kind, "dimension": _WIDE, "initial": initial},
        "features": features,
        "encoder": {**encoder, **changes_of_encoder},
        "training": {**_TRAINING, **changes},
        "data": WORDS,
        "dev": {"sets": _word_sets(inputs), "every": "quarter"},
    }
    return learn_run(inputs, f"words-{name.lower()}", settings, seed)[1]


def _word_sets(inputs: ExperimentInputs) -> list[str]:
    if not inputs.word_sets:
        raise InputError("this experiment scores single words: give --word-sets, a folder or file of such pairs")
    return [str(path.resolve()) for path in inputs.word_sets]


def _curve(inputs: ExperimentInputs, name: str, seed: int) -> list[tuple[int, float]]:
    """Return (step, mean over tasks) each quarter."""
    logged = list_scores_over_steps(_learn_run(inputs, name, seed), "spearman")
    whole = [curve for task, curve in logged.items() if "/" not in task]
    return [(points[0][0], float(np.mean([score for _, score in points]))) for points in zip(*whole, strict=True)]


_DIMENSION = 300
_CHARACTERS = 134  # that occur in the paper's training data
_NGRAMS = 100_283  # of CHARAGRAM's vocabulary for words
# What, its settings, the rows of its table, whether the paper counts the table, and the paper's number.
_COUNTED: tuple[tuple[str, EncoderSettings, int, bool, int], ...] = (
    ("charCNN, filters of 1 to 6", CharCnnSettings(kind="char-cnn", filters="b"), _CHARACTERS, True, 881_025),
    ("charLSTM, with output gate", LstmSettings(kind="lstm"), _CHARACTERS, True, 763_200),
    ("LSTM over words, with output gate", LstmSettings(kind="lstm"), 1, False, 722_100),
    ("LSTM over words, without", LstmSettings(kind="lstm", output_gate=False), 1, False, 541_500),
    ("RNN over words", RnnSettings(kind="rnn"), 1, False, 180_300),
    ("iRNN over words", IrnnSettings(kind="irnn"), 1, False, 180_300),
)  # fmt: skip
_SWAPPED = "charLSTM, with output gate"  # 4 (2 * 300^2 + 300) + 3 * 300 + 134 * 300 = 762,300: two digits are swapped
_TEXT = 100  # characters: 100 n-grams of each of 3 orders, and 300 numbers an n-gram


def count_parameters(inputs: ExperimentInputs) -> ResultTable:
    """Count the parameters of CHARAGRAM, section 4.4; of word models only the composition."""
    del inputs
    rows: list[ResultRow] = []
    same = {}
    for name, settings, size, with_table, paper in _COUNTED:
        table = torch.zeros(size, _DIMENSION)
        counts = build_encoder(settings, table, _DIMENSION, torch.Generator()).parameter_counts()
        number = sum(counts.values()) - (0 if with_table else counts["table"])
        rows.append({"what": name, "parameters": number, "paper": paper})
        same[name] = number == paper
    used = 3 * _TEXT * _DIMENSION
    bag = BagSettings(activation="linear")
    whole = sum(
        build_encoder(bag, torch.zeros(_NGRAMS, _DIMENSION), _DIMENSION, torch.Generator()).parameter_counts().values()
    )
    rows.append({"what": "CHARAGRAM, 100,283 n-grams of 2 to 4", "parameters": whole, "paper": None})
    rows.append({"what": f"CHARAGRAM, used by a text of {_TEXT} characters", "parameters": used, "paper": 90_000})
    all_but_swapped = all(value for name, value in same.items() if name != _SWAPPED)
    counted = next(int(row["parameters"] or 0) for row in rows if row["what"] == _SWAPPED)
    return ResultTable(
        tuple(rows),
        (
            Finding("all counts but charLSTM's are the paper's", all_but_swapped, "see the table", sure=True),
            Finding(
                "charLSTM has the paper's 763,200",
                same[_SWAPPED],
                f"{counted:,}: the paper's number has two digits swapped, by its own equations",
            ),
            Finding(
                "a text uses fewer parameters of CHARAGRAM than charCNN or charLSTM have",
                used < min(int(row["parameters"] or 0) for row in rows[:2]),
                f"{used:,}",
                sure=True,
            ),
        ),
    )


def score_pairs_by_length(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 7: bins of the longer text's words."""
    rows, scores = score_bins(inputs, "words", LENGTHS, count_longer_words)
    ahead = [name for name in scores["PP"] if scores["CHARAGRAM"][name] > scores["PP"][name]]
    claim = "CHARAGRAM is ahead of PARAGRAM-PHRASE at every length"
    seen = f"at {len(ahead)} of {len(scores['PP'])}"
    return ResultTable(rows, (Finding(claim, len(ahead) == len(scores["PP"]), seen),))


_SHOWN = 3
# Table 8: the words of the paper's CHARAGRAM-PHRASE and PARAGRAM-PHRASE, and those that say the same in one word.
_NEGATIONS = {
    "not capable": ("incapable, unable, incapacity", "not, capable, stalled", {"incapable", "unable"}),
    "not able": ("unable, incapable, incapacity", "not, able, stalled", {"unable", "incapable"}),
    "not possible": ("impossible, impracticable, unable", "not, stalled, possible", {"impossible"}),
    "not sufficient": (
        "insufficient, sufficient, inadequate", "not, sufficient, stalled", {"insufficient", "inadequate"},
    ),
    "not easy": ("easy, difficult, tough", "not, stalled, easy", {"difficult", "tough", "hard", "uneasy"}),
}  # fmt: skip
# Table 9, and a word by which its neighbors are known to be right.
_WORDS = {
    "vehicals": ("vehical, vehicles, vehicels", "vehicle"),
    "growths": ("growth, grow, growing", "growth"),
    "litered": ("liter, litering, lited", "litter"),
    "journeying": ("journey, journeys, voyage", "journey"),
    "babyyyyyy": ("babyyyyyyy, baby, babys", "baby"),
    "adirty": ("dirty, dirtyyyyyy, filthy", "dirty"),
    "refunding": ("refunds, refunded, refund", "refund"),
    "professors": ("professor, professorships, professorship", "professor"),
    "huge": ("enormous, tremendous, large", "enormous"),
}
_NGRAMS_NEIGHBORS = {
    "die": "_dy, _die, dead", "foo": "_foo, _eat, meal", "pee": "peed, hast, spee", "aiv": "waiv, aive, boli",
    "ngu": "ngue, uist, ongu",
}  # fmt: skip


def find_nearest_to_negations(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 8: the words nearest to "not" and a word."""
    models = _models(inputs)
    characters, words = (_nearest(model, PHRASES, models, inputs) for model in models)
    rows = tuple(
        {
            "phrase": phrase,
            models[0].name: ", ".join(near_by_characters),
            "CHARAGRAM-PHRASE, paper": _NEGATIONS[phrase][0],
            models[1].name: ", ".join(near_by_words),
            "PARAGRAM-PHRASE, paper": _NEGATIONS[phrase][1],
        }
        for phrase, near_by_characters, near_by_words in zip(PHRASES, characters, words, strict=True)
    )
    same = [phrase for phrase, near in zip(PHRASES, characters, strict=True) if set(near) & _NEGATIONS[phrase][2]]
    kept = [
        phrase
        for phrase, near in zip(PHRASES, words, strict=True)
        if near and near[0] in phrase.split() and not set(near) & _NEGATIONS[phrase][2]
    ]
    half = len(PHRASES) // 2
    claims = (
        (f"a word that says the same is among the {_SHOWN} nearest by n-grams", same),
        ("by words one of the phrase's own is nearest, and none that says the same is near", kept),
    )
    return ResultTable(
        rows,
        tuple(Finding(f"{claim}, mostly", len(seen) > half, _phrases(seen, len(PHRASES))) for claim, seen in claims),
    )


def find_nearest_to_words(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 9: the words nearest to rare, misspelt and common ones."""
    models = _models(inputs)
    characters, words = (_nearest(model, tuple(_WORDS), models, inputs) for model in models)
    rows: list[ResultRow] = [
        {
            "word": word,
            models[0].name: ", ".join(near_by_characters),
            "CHARAGRAM-PHRASE, paper": paper,
            models[1].name: ", ".join(near_by_words) or "unknown",
        }
        for (word, (paper, _)), near_by_characters, near_by_words in zip(_WORDS.items(), characters, words, strict=True)
    ]
    right = [
        word
        for (word, (_, stem)), near in zip(_WORDS.items(), characters, strict=True)
        if any(stem in word for word in near)
    ]
    return ResultTable(
        tuple(rows),
        (
            Finding(
                f"a word of the same meaning is among the {_SHOWN} nearest, mostly, misspelt or not",
                len(right) > len(_WORDS) // 2,
                _phrases(right, len(_WORDS)),
                sure=True,
            ),
            Finding("the model of words has nothing for some of them", not all(words), "see the table"),
        ),
    )


def find_nearest_to_ngrams(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 10: the n-grams nearest to an n-gram; _ is a space."""
    model = _models(inputs)[0]
    rows: list[ResultRow] = []
    overlapping = 0
    for ngram, paper in _NGRAMS_NEIGHBORS.items():
        try:
            near = [neighbor.text.replace(" ", "_") for neighbor in nearest_ngrams(model, ngram, k=_SHOWN)]
        except InputError:
            near = []
        overlapping += any(ngram not in neighbor for neighbor in near)
        rows.append({"n-gram": ngram, model.name: ", ".join(near), "paper": paper})
    claim = "among the nearest are n-grams that do not hold it"
    return ResultTable(tuple(rows), (Finding(claim, overlapping == len(rows), f"{overlapping} of {len(rows)}"),))


def _models(inputs: ExperimentInputs) -> tuple[Embedder, Embedder]:
    try:
        characters, words = (gramvec.load(inputs.models / name) for name in ("charagram-phrase", "paragram-phrase"))
    except BundleError as error:
        raise InputError(f"this experiment needs the shipped models: give --models, their folder ({error})") from error
    return characters, words


def _nearest(
    model: Embedder, texts: Sequence[str], models: Sequence[Embedder], inputs: ExperimentInputs
) -> list[list[str]]:
    candidates = list_candidate_words(models, find_sets(inputs.sets)[0])
    return [
        [neighbor.text for neighbor in neighbors]
        for neighbors in find_nearest_words(model, texts, candidates, k=_SHOWN)
    ]


def _phrases(phrases: Sequence[str], number: int) -> str:
    return f"{len(phrases)} of {number}: {', '.join(phrases) or 'none'}"


_TRAINING_SIZES = {"batch": 50, "epochs": 2, "decay": "none", "negatives": "max"}
# Spearman on SL999.
_PAPER_SIZES = {
    100: (6.2, 7.0, 7.7, 9.1, 8.8),
    1_000: (15.2, 33.0, 38.7, 43.2, 43.9),
    50_000: (14.4, 52.4, 67.8, 69.2, 69.5),
}
_LONG = (2, 3, 4, 5, 6)


def score_word_sizes(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 5: Spearman on the first set of words, mean over seeds, by the number of n-grams of each order."""
    scores = {(size, orders): _score(inputs, size, orders) for size in TABLE_5_SIZES for orders in TABLE_5_ORDERS}
    rows: list[ResultRow] = []
    for size in TABLE_5_SIZES:
        row: dict[str, str | float | None] = {"n-grams of each order": size}
        row |= {spell_orders(orders): round(scores[size, orders], 1) for orders in TABLE_5_ORDERS}
        paper = zip(TABLE_5_ORDERS, _PAPER_SIZES[size], strict=True)
        rows.append(row | {f"{spell_orders(orders)}, paper": value for orders, value in paper})
    small, middle, large = ([scores[size, orders] for orders in TABLE_5_ORDERS[1:]] for size in TABLE_5_SIZES)
    to_six = scores[TABLE_5_SIZES[-1], _LONG]
    to_four = scores[TABLE_5_SIZES[-1], (2, 3, 4)]
    best = max(scores, key=lambda system: scores[system])
    rising = all(first < two < three for first, two, three in zip(small, middle, large, strict=True))
    return ResultTable(
        tuple(rows),
        (
            Finding("more n-grams are better, with every set of orders but 2 alone", rising, "see the table"),
            Finding("with 50,000 orders to 6 are better than to 4", to_six > to_four, f"{to_six:.1f}, {to_four:.1f}"),
            Finding(
                "the best is 50,000 of orders 2 to 6",
                best == (TABLE_5_SIZES[-1], _LONG),
                f"best {best[0]:,} of {spell_orders(best[1])}",
            ),
        ),
    )


def _score(inputs: ExperimentInputs, size: int, orders: tuple[int, ...]) -> float:
    settings = {
        "model": {"kind": "charagram-phrase", "dimension": 100, "activation": "linear"},
        "features": {"orders": orders},
        "vocabulary": {"max_ngrams_each": size},
        "training": _TRAINING_SIZES,
        "data": WORDS,
        "dev": {"sets": _word_sets(inputs)[:1]},
    }
    name = f"ngrams-{size}-{orders[-1]}"
    tasks_of_seeds = [learn_run(inputs, name, settings, seed)[1]["scores"]["tasks"] for seed in inputs.seeds]
    return float(np.mean([task["mean"]["spearman"] for tasks in tasks_of_seeds for task in tasks.values()]))


_FALLS = -0.3  # of a correlation over sets: -0.45 in the paper


def score_by_unknown_words(inputs: ExperimentInputs) -> ResultTable:
    """Compare each set's share of words without a row with its scores."""
    models = models_of(inputs, COMPARED)
    words = models["PP"][0].featurizer
    rows: list[ResultRow] = []
    for similarity_set in find_sets(inputs.sets)[0]:
        batch = words([*similarity_set.left, *similarity_set.right])
        share = float(np.mean(batch.ids == words.vocabulary.unknown_row))
        row: dict[str, str | float | None] = {
            "set": f"{similarity_set.task}/{similarity_set.name}",
            "unknown, %": round(100 * share, 2),
        }
        for system, of_seeds in models.items():
            correlations = [
                correlate(model.similarity(similarity_set.left, similarity_set.right), similarity_set.scores)[0]
                for model in of_seeds
            ]
            row[system] = round(100 * float(np.mean(correlations)), 1)
        rows.append(row)
    unknown, *scores = (np.array([row[column] or 0 for row in rows], float) for column in ("unknown, %", *COMPARED))
    together = [correlate(unknown, score)[0] for score in scores]
    seen = ", ".join(f"{system} {value:+.2f}" for system, value in zip(COMPARED, together, strict=True))
    claims = (
        (
            f"the more unknown words a set has, the lower PARAGRAM-PHRASE's score: below {_FALLS:g}",
            together[0] < _FALLS,
        ),
        ("of CHARAGRAM's it is not so", together[1] >= _FALLS),
    )
    return ResultTable(tuple(rows), tuple(Finding(claim, bool(holds), seen) for claim, holds in claims))


_UNKNOWN: tuple[tuple[str, int, int, float, float], ...] = (
    ("0", 0, 0, 71.4, 73.8),
    ("1", 1, 1, 68.8, 78.8),
    ("2", 2, 2, 66.4, 72.8),
    ("1 or more", 1, 10**6, 68.6, 77.9),
    ("all", 0, 10**6, 71.0, 74.0),
)


def score_pairs_by_unknown_words(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 6: bins of both texts' words for which PARAGRAM-PHRASE has no row of their own."""

    def number(left: Sequence[str], right: Sequence[str], words: ScoredModel) -> npt.NDArray[np.int64]:
        unknown = words.featurizer.vocabulary.unknown_row
        counts = np.zeros(len(left), np.int64)
        for side in (left, right):
            batch = words.featurizer(side)
            owners = np.repeat(np.arange(len(side)), batch.counts)
            counts += np.bincount(owners[batch.ids == unknown], minlength=len(side))
        return counts

    rows, scores = score_bins(inputs, "unknown words", _UNKNOWN, number)
    fallen = {
        system: of_bins["0"] - of_bins["1 or more"]
        for system, of_bins in scores.items()
        if len(of_bins) == len(_UNKNOWN)
    }
    seen = ", ".join(f"{system} loses {value:.1f}" for system, value in fallen.items())
    ahead = all(scores["CHARAGRAM"][name] > scores["PP"][name] for name in scores["PP"])
    return ResultTable(
        rows,
        (
            Finding("unknown words cost PARAGRAM-PHRASE", fallen.get("PP", 0) > 0, seen or "too few unknown words"),
            Finding(
                "they cost CHARAGRAM less",
                len(fallen) == len(COMPARED) and fallen["CHARAGRAM"] < fallen["PP"],
                seen or "too few unknown words",
            ),
            Finding("CHARAGRAM is ahead in every bin", ahead, "see the table"),
        ),
    )


_BY_CHARACTERS = ("CHARAGRAM",)
_TREEBANK = (
    "12,544 sentences of English texts of the web (EWT, its Penn tags), {} epochs of one setting for each encoder, for "
    "sections 1 to 18 of the Wall Street Journal and 50 epochs of tuned ones"
)
_BUNDLES = "the shipped bundles, which learned from a transformer, for the paper's models"

_EXPERIMENTS = (
    Experiment(
        "charagram-table-1", "CHARAGRAM, Table 1", "Character models on single words",
        "60,000 pairs of PPDB's words, four epochs, 100 dimensions, for 770,007, fifty epochs and 300",
        score_word_similarity, learns=True,
    ),
    Experiment(
        "charagram-table-4", "CHARAGRAM, Table 4", "Part-of-speech tagging over four word encoders",
        f"{_TREEBANK.format('ten')}; WSJ is 3,914 sentences of the Journal, scored by what learned from the web",
        tagging.score_tagging, learns=True, tags=True,
        note="Accuracy times 100 of the epoch that was best on the held-out part. charLSTM still rose in the tenth. "
        "The second layer's lead is 0.006, and seeds are up to 0.29 apart.",
    ),
    Experiment(
        "charagram-figure-1", "CHARAGRAM, Figure 1", "How soon character models learn words",
        "the runs of charagram-table-1", score_word_curves, learns=True,
        drawing=Drawing("pairs", ("CHARAGRAM", "charCNN", "charLSTM")),
    ),
    Experiment(
        "charagram-figure-1-tagging", "CHARAGRAM, Figure 1", "How soon character models learn to tag",
        "the runs of charagram-table-4, on EWT's development part", tagging.score_tagging_curves, learns=True,
        tags=True,
        drawing=Drawing("epoch", ("CHARAGRAM", "CHARAGRAM, 2 layers", "charCNN", "charLSTM")),
    ),
    Experiment(
        "charagram-table-5", "CHARAGRAM, Table 5", "Number and orders of n-grams, on SL999",
        "60,000 pairs of PPDB's words, two epochs, 100 dimensions, for 770,007, five epochs and 300",
        score_word_sizes,
        learns=True,
    ),
    Experiment(
        "charagram-table-5-tagging", "CHARAGRAM, Table 5", "Number and orders of n-grams, in tagging",
        _TREEBANK.format("two"), tagging.score_tagging_by_ngrams, learns=True, tags=True,
        note="Accuracy times 100 on EWT's development part after the last epoch.",
    ),
    Experiment(
        "charagram-table-6", "CHARAGRAM, Table 6", "Pairs by their number of unknown words",
        "models of all-systems; sts12 and sts16; unknown is what GloVe 6B's first 50,000 words lack",
        score_pairs_by_unknown_words, learns=True,
    ),
    Experiment(
        "charagram-table-7", "CHARAGRAM, Table 7", "Pairs by their length in words",
        "models of all-systems; sts12 and sts16", score_pairs_by_length, learns=True,
    ),
    Experiment(
        "charagram-table-8", "CHARAGRAM, Table 8", "Words nearest to a negation", _BUNDLES,
        find_nearest_to_negations,
    ),
    Experiment(
        "charagram-table-9", "CHARAGRAM, Table 9", "Words nearest to a word", _BUNDLES,
        find_nearest_to_words,
    ),
    Experiment(
        "charagram-table-10", "CHARAGRAM, Table 10", "N-grams nearest to an n-gram", _BUNDLES,
        find_nearest_to_ngrams,
    ),
    Experiment(
        "charagram-parameters", "CHARAGRAM, section 4.4", "Numbers of parameters", "the paper's own sizes",
        count_parameters,
    ),
    Experiment(
        "charagram-filters", "CHARAGRAM, section 4.1", "Number of charCNN's filters",
        "60,000 pairs of PPDB's words, four epochs, 100 dimensions", score_filters, learns=True,
    ),
    Experiment(
        "charagram-unknown", "CHARAGRAM, section 5.1", "Shares of unknown words and scores, set by set",
        "models of all-systems; 11 sets for 22; unknown is what GloVe 6B's first 50,000 words lack",
        score_by_unknown_words,
        learns=True,
    ),
)  # fmt: skip

PAPER = Paper(
    "CHARAGRAM",
    "Wieting, Bansal, Gimpel, Livescu: Charagram, 2016",
    (
        Item("Table 1", "word similarity of three character models, SL999 and WS353",
             "CHARAGRAM 63.3, 58.4; charLSTM 54.5, 51.4; charCNN 30.6, 33.2", ("charagram-table-1",)),
        Item("Table 2", "SL999 and Rare Words against earlier work", "70.6; 47.1",
             missing="not done: 173,881 n-grams on PPDB XXL, which cannot be had; Rare Words is kept apart"),
        Item("Table 3", "four systems over 22 sets", "CHARAGRAM-PHRASE 68.7, PP 66.2, charCNN 59.2, charLSTM 41.9",
             ("all-systems",), OTHER_SETS, _BY_CHARACTERS),
        Item("Table 4", "part-of-speech tagging", "charCNN 97.02, charLSTM 96.90, CHARAGRAM 96.99, 2 layers 97.10",
             ("charagram-table-4",)),
        Item("Figure 1", "how soon each model learns, on words and on tagging", "CHARAGRAM first on both",
             ("charagram-figure-1", "charagram-figure-1-tagging")),
        Item("Table 5", "number and orders of n-grams, SL999 and tagging",
             "50,000 each: 14.4 (2) to 69.5 (2 to 6); 1,000: 15.2 to 43.9; 100: 6.2 to 8.8; "
             "tagging 95.5 to 97.1",
             ("charagram-table-5", "charagram-table-5-tagging"),
             "sentences, which python -m gramvec_research sweep makes in hours"),
        Item("Table 6", "pairs by unknown words", "PP 71.4 to 68.6, CHARAGRAM-PHRASE 73.8 to 77.9",
             ("charagram-table-6",)),
        Item("Table 7", "pairs by length", "CHARAGRAM-PHRASE ahead of PP at each of ten lengths",
             ("charagram-table-7",)),
        Item("Table 8", "words nearest to a negation", "not capable: incapable, unable; not, capable",
             ("charagram-table-8",)),
        Item("Table 9", "words nearest to a word", "vehicals: vehical, vehicles, vehicels", ("charagram-table-9",)),
        Item("Table 10", "n-grams nearest to an n-gram", "die: _dy, _die, dead", ("charagram-table-10",)),
        Item("Section 4.4", "numbers of parameters", "charCNN 881,025; charLSTM 763,200",
             ("charagram-parameters",)),
        Item("Section 4.1", "more filters of charCNN", "better with more of them",
             ("charagram-filters",)),
        Item("Footnote 4", "a second layer of CHARAGRAM", "worse on similarity", ("all-systems",),
             about=("a second layer",)),
        Item("Section 5.1", "share of unknown words against score", "correlation -0.45", ("charagram-unknown",)),
        Item("Supplement, Table 1", "each of the 22 sets, with the official quantiles",
             "CHARAGRAM-PHRASE above PP on 15 of 22", ("all-systems-sets", "all-systems-wins"), OTHER_SETS,
             ("CHARAGRAM", "PP is", "charCNN")),
    ),
    experiments=_EXPERIMENTS,
)  # fmt: skip
