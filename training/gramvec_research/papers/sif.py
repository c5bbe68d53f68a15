"""SIF (Arora et al., 2017): its tables and figures over open data, and what it found."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from gramvec.errors import InputError
from gramvec_research.shared import (
    GIVEN,
    PHRASE,
    SN,
    Drawing,
    Experiment,
    ExperimentInputs,
    Finding,
    Item,
    Paper,
    ResultRow,
    ResultTable,
    SetWords,
    kinds_of_vectors,
    list_values,
)
from gramvec_research.supervised import (
    ENCODER_NOTE,
    LSTM,
    OPEN_LSTM,
    PHRASES,
    SIF,
    SupervisedTask,
    mean_score,
    read_entailment,
    read_inference,
    read_reviews,
    read_sentiment,
    read_similarity,
    regime_of,
    score_head,
    score_nb_svm,
)
from gramvec_research.sweep import FIGURE_2A
from gramvec_training.evaluation.similarity import find_sets
from gramvec_training.fitting.sif import find_common_components
from gramvec_training.readers.vectors import read_frequencies

# GloVe 840B, Tables 1 and 6 of the paper.
_PAPER = {
    "sts12": {"avg": 52.5, "tf-idf": 58.7, "W": 54.0, "R": 55.6, "WR": 56.2},
    "sick": {"avg": 65.9, "tf-idf": 69.4, "W": 70.5, "R": 70.6, "WR": 72.2},
}


def ablate_given(inputs: ExperimentInputs) -> ResultTable:
    """Make Tables 1 and 6: each task's mean with and without weights and removal."""
    scores = _ablate(inputs, inputs.vectors)
    rows = tuple(
        {"task": task, "system": system, "pearson": round(of_tasks[task], 2), "paper": _PAPER.get(task, {}).get(system)}
        for task in scores["avg"]
        for system, of_tasks in scores.items()
    )
    mean = {system: _mean(of_tasks) for system, of_tasks in scores.items()}
    seen = list_values(mean)
    return ResultTable(
        rows,
        (
            *_orders(mean),
            Finding("R gains more than W over GloVe", mean["R"] > mean["W"], seen),
            Finding("tf-idf is between avg and WR", mean["avg"] < mean["tf-idf"] < mean["WR"], seen),
        ),
    )


def ablate_learned(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 6 over vectors that are learned here from raw text, and over a trained model's."""
    kinds = {kind: place for kind, place in kinds_of_vectors(inputs).items() if kind != GIVEN}
    if not kinds:
        raise InputError("this experiment learns vectors: give --data, whose folder raw has texts of Wikipedia")
    scores = {kind: _ablate(inputs, place) for kind, place in kinds.items()}
    rows = tuple(
        {"task": task, "system": system} | {kind: round(scores[kind][system][task], 2) for kind in scores}
        for task in next(iter(scores.values()))["avg"]
        for system in next(iter(scores.values()))
    )
    mean = {
        kind: {system: _mean(of_tasks) for system, of_tasks in of_systems.items()}
        for kind, of_systems in scores.items()
    }
    return ResultTable(
        rows, tuple(finding for kind, of_systems in mean.items() for finding in _orders(of_systems, f"over {kind} "))
    )


def _ablate(inputs: ExperimentInputs, vectors: Path) -> dict[str, dict[str, float]]:
    """Return the score of each system on each task."""
    words = SetWords(vectors, inputs.sets)
    weights = words.sif(read_frequencies(inputs.frequencies[0]))
    return {
        "avg": words.score(),
        "tf-idf": words.score(words.idf()),
        "W": words.score(weights),
        "R": words.score(components=1),
        "WR": words.score(weights, 1),
    }


def _orders(mean: Mapping[str, float], over: str = "") -> tuple[Finding, Finding]:
    seen, is_given = list_values(mean), not over
    return (
        Finding(f"{over}avg < W < WR on the mean of the tasks", mean["avg"] < mean["W"] < mean["WR"], seen),
        Finding(
            f"{over}avg < R < WR on the mean of the tasks", mean["avg"] < mean["R"] < mean["WR"], seen, sure=is_given
        ),
    )


def _mean(scores: Mapping[str, float]) -> float:
    return float(np.mean(list(scores.values())))


_NEAREST, _COMMONEST = 10, 10_000
_FUNCTION_WORDS = 500  # the most frequent of English, nearly all of them without a meaning of their own
_PAPER_WORDS = {"sick": "just, when, even, one, up, little, way, there, while, but"}


def find_component_words(inputs: ExperimentInputs) -> ResultTable:
    """Find the first component of each task's weighted sentences, and the words nearest to it by |cosine|."""
    frequencies = read_frequencies(inputs.frequencies[0])
    ranks = {
        word: rank for rank, word in enumerate(sorted(frequencies, key=lambda other_word: -frequencies[other_word]))
    }
    rows: list[ResultRow] = []
    function_words = {}
    for folder in inputs.sets:
        words = SetWords(inputs.vectors, [folder])
        model = words.model(words.sif(frequencies))
        vectors = model.encode(words.texts)
        (component,) = find_common_components(vectors, 1)
        task = find_sets([folder])[0][0].task
        nearest = _nearest(words, component, ranks)
        function_words[task] = sum(ranks[word] < _FUNCTION_WORDS for word in nearest)
        rows.append({"task": task, "words": ", ".join(nearest), "paper": _PAPER_WORDS.get(task, "")})
    claim = f"most of the {_NEAREST} nearest are among the {_FUNCTION_WORDS} commonest words"
    seen = ", ".join(f"{task} {number}" for task, number in function_words.items())
    return ResultTable(tuple(rows), (Finding(claim, min(function_words.values()) > _NEAREST // 2, seen),))


def _nearest(words: SetWords, component: np.ndarray, ranks: Mapping[str, int]) -> list[str]:
    lengths = np.maximum(np.linalg.norm(words.table, axis=1), 1e-12)
    cosines = np.abs(words.table @ component) / lengths
    common = [row for row, word in enumerate(words.words) if ranks.get(word, _COMMONEST) < _COMMONEST]
    order = sorted(common, key=lambda row: (-cosines[row], words.words[row]))
    return [words.words[row] for row in order[:_NEAREST]]


_PAPER_FEW_LABELS = {1_000: (82.0, 84.0), 200: (77.0, 73.0)}
_AHEAD = 1.0
_DRAWS = 5  # of reviews


def score_by_labels(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 8: reviews from all, 1,000 and 200 labels, each the mean over five draws of them."""
    task = read_reviews(inputs)
    rows: list[ResultRow] = []
    ahead: dict[int, float] = {}
    sizes = sorted({min(size, len(task.learned)) for size in (len(task.learned), *_PAPER_FEW_LABELS)}, reverse=True)
    for size in sizes:
        drawn = [task.only(size, seed=draw) for draw in range(1, _DRAWS + 1)]
        of_sif = float(
            np.mean(
                [score_head(inputs, task_of_draw, SIF, "features", draw) for draw, task_of_draw in enumerate(drawn, 1)]
            )
        )
        rival = float(np.mean([score_nb_svm(task_of_draw) for task_of_draw in drawn]))
        ahead[size] = of_sif - rival
        paper = _PAPER_FEW_LABELS.get(size, (None, None))
        rows.append({
            "labels": size, "SIF": round(of_sif, 1), "NB-SVM": round(rival, 1), "SIF, paper": paper[0],
            "NB-SVM, paper": paper[1],
        })  # fmt: skip
    seen = ", ".join(f"{size:,}: {value:+.1f}" for size, value in ahead.items())
    return ResultTable(
        tuple(rows),
        (
            Finding(
                f"with most labels NB-SVM is at least {_AHEAD:g} point above SIF", ahead[sizes[0]] <= -_AHEAD, seen
            ),
            Finding(f"with fewest SIF is at least {_AHEAD:g} point above NB-SVM", ahead[sizes[-1]] >= _AHEAD, seen),
        ),
    )


_PAPER_INFERENCE = {"PP": None, LSTM: 77.6, SIF: 78.2}


def score_inference(inputs: ExperimentInputs, *, joined: bool = False) -> ResultTable:
    """Return the accuracy on SNLI, learned from only its development part, by the head that compares.

    joined: below the layers that the paper has from Bowman et al., both vectors side by side.
    """
    task, layers = read_inference(inputs), ", three layers" if joined else ""
    accuracies = {
        system: mean_score(inputs, task, system, regime_of(system), joined=joined) for system in _PAPER_INFERENCE
    }
    rows: list[ResultRow] = [
        {"system": system, "accuracy": round(score, 1), "paper": _PAPER_INFERENCE[system]}
        for system, score in accuracies.items()
    ]
    rows.append({"system": "the commonest class", "accuracy": round(task.majority(), 1), "paper": None})
    return ResultTable(
        tuple(rows),
        (
            Finding(f"SIF's features are at least as good as the LSTM{layers}", accuracies[SIF] >= accuracies[LSTM],
                    list_values(accuracies)),
            Finding(f"SIF's features are 10 points above the commonest class{layers}",
                    accuracies[SIF] >= task.majority() + 10, f"{accuracies[SIF]:.1f}, {task.majority():.1f}"),
        ),
    )  # fmt: skip


def score_parameters(inputs: ExperimentInputs) -> ResultTable:
    """Make Figure 2a: WR on the first task for a from 3e-1 to 1e-5, over each kind of vectors."""
    frequencies = read_frequencies(inputs.frequencies[0])
    plain: dict[str, float] = {}
    scores: dict[str, dict[float, float]] = {}
    for kind, place in kinds_of_vectors(inputs).items():
        words = SetWords(place, inputs.sets[:1])
        plain[kind] = _mean(words.score())
        scores[kind] = {a: _mean(words.score(words.sif(frequencies, a), 1)) for a in FIGURE_2A}
    rows: list[ResultRow] = [
        {"a": a} | {kind: round(of_weights[a], 2) for kind, of_weights in scores.items()} for a in FIGURE_2A
    ]
    rows.append({"a": "none (avg)"} | {kind: round(score, 2) for kind, score in plain.items()})
    findings = [
        finding for kind, of_weights in scores.items() for finding in _curve_findings(kind, of_weights, plain[kind])
    ]
    return ResultTable(tuple(rows), tuple(findings))


def _curve_findings(kind: str, scores: Mapping[float, float], plain: float) -> tuple[Finding, ...]:
    best, top = max(scores.items(), key=lambda pair: pair[1])
    within = [score for a, score in scores.items() if 1e-4 <= a <= 1e-2]
    first, last = scores[FIGURE_2A[0]], scores[FIGURE_2A[-1]]
    return (
        Finding(f"{kind}: the best a is between 1e-4 and 1e-2", 1e-4 <= best <= 1e-2, f"best {best:g}: {top:.1f}"),
        Finding(
            f"{kind}: WR is above avg for a from 1e-4 to 1e-2",
            min(within) > plain,
            f"least {min(within):.1f}, avg {plain:.1f}",
        ),
        Finding(
            f"{kind}: both ends are worse",
            max(first, last) < top,
            f"{first:.1f} at {FIGURE_2A[0]:g}, {last:.1f} at {FIGURE_2A[-1]:g}",
        ),
    )


_RECURRENT = ("RNN", OPEN_LSTM, LSTM)
# Similarity, entailment and sentiment, usual and shuffled.
_PAPER_USUAL = {"RNN": (73.13, 76.4, 86.5), OPEN_LSTM: (85.45, 83.2, 86.6), LSTM: (83.41, 82.0, 89.2)}
_PAPER_SHUFFLED = {"RNN": (54.50, 61.7, 84.2), OPEN_LSTM: (77.24, 78.2, 82.9), LSTM: (79.39, 81.0, 84.1)}


def score_shuffled(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 3: recurrent models that learn and are scored with the words of each text in another order."""
    tasks = (read_similarity(inputs), read_entailment(inputs), read_sentiment(inputs, PHRASES))
    rows: list[ResultRow] = []
    falls: dict[str, list[float]] = {}
    for system in _RECURRENT:
        falls[system] = []
        for place, task in enumerate(tasks):
            usual = mean_score(inputs, task, system, "trained")
            other = float(
                np.mean([score_head(inputs, task.shuffled(seed), system, "trained", seed) for seed in inputs.seeds])
            )
            falls[system].append(usual - other)
            rows.append({
                "system": system, "task": task.name, "usual": round(usual, 1), "shuffled": round(other, 1),
                "usual, paper": _PAPER_USUAL[system][place], "shuffled, paper": _PAPER_SHUFFLED[system][place],
            })  # fmt: skip
    seen = "; ".join(
        f"{system} {', '.join(f'{-fall:+.1f}' for fall in of_tasks)}" for system, of_tasks in falls.items()
    )
    least = min(min(of_tasks) for of_tasks in falls.values())
    first = {system: of_tasks[0] for system, of_tasks in falls.items()}
    return ResultTable(
        tuple(rows),
        (
            Finding(f"every recurrent model falls by {_AHEAD:g} point on every task", least >= _AHEAD, seen),
            Finding("RNN falls most on similarity", max(first, key=lambda system: first[system]) == "RNN", seen),
        ),
    )


_SMALL_RANGE = 1.0  # of Pearson x 100: what "almost the same" is


def score_frequency_sources(inputs: ExperimentInputs) -> ResultTable:
    """Make Figure 2b: WR on the first task with each file of frequencies."""
    words = SetWords(inputs.vectors, inputs.sets[:1])
    scores = {
        path.name.split(".")[0]: _mean(words.score(words.sif(read_frequencies(path)), 1)) for path in inputs.frequencies
    }
    apart = max(scores.values()) - min(scores.values())
    rows: tuple[ResultRow, ...] = tuple(
        {"frequencies": name, "pearson": round(score, 2)} for name, score in scores.items()
    )
    seen = f"{apart:.2f} between the best and the worst of {len(scores)}"
    claim = f"the source of p(w) hardly matters (at most {_SMALL_RANGE:g} apart)"
    return ResultTable(rows, (Finding(claim, len(scores) > 1 and apart <= _SMALL_RANGE, seen),))


_SAMPLING = 1e-5  # word2vec's threshold


def compare_subsampling(inputs: ExperimentInputs) -> ResultTable:
    """Make Figure 1: the share of a word that word2vec keeps, min(1, sqrt(1e-5 / p)), and a / (a + p) with a = 1e-4."""
    p = np.array([10.0**-i for i in range(7, 0, -1)])
    kept, weight = np.minimum(1, np.sqrt(_SAMPLING / p)), 1e-4 / (1e-4 + p)
    rows = tuple(
        {"p": float(frequency), "word2vec": round(float(share), 4), "SIF, a = 1e-4": round(float(of_sif), 4)}
        for frequency, share, of_sif in zip(p, kept, weight, strict=True)
    )
    apart = float(np.abs(kept - weight).max())
    falls = bool(np.all(np.diff(kept) <= 0) and np.all(np.diff(weight) < 0))
    seen = f"both fall from {kept[0]:.2f} and {weight[0]:.2f}; at most {apart:.2f} apart"
    return ResultTable(
        rows, (Finding("the curves are alike: both near 1 for rare words, and falling", falls, seen, sure=True),)
    )


_PAPER_SUPERVISED = {
    "PP": (84.9, 83.1, 79.4),
    "DAN": (85.96, 84.5, 83.4),
    "RNN": (73.13, 76.4, 86.5),
    OPEN_LSTM: (85.45, 83.2, 86.6),
    LSTM: (83.41, 82.0, 89.2),
    SIF: (86.03, 84.6, 82.2),
}
_ALIKE = 2.0


def score_supervised(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 2: each system, learned with its head; SIF's own vectors are fixed. Beside them what is simplest."""
    tasks = (read_similarity(inputs), read_entailment(inputs), read_sentiment(inputs, PHRASES))
    scores_of_systems = {
        system: [mean_score(inputs, task, system, regime_of(system)) for task in tasks] for system in _PAPER_SUPERVISED
    }
    rows: list[ResultRow] = [
        _row(system, tasks, scores) | _row("", tasks, list(_PAPER_SUPERVISED[system]), ", paper") | {"system": system}
        for system, scores in scores_of_systems.items()
    ]
    nothing = dict.fromkeys((f"{task.name}, paper" for task in tasks), None)
    rows.append(_row("the commonest class", tasks, [None, tasks[1].majority(), tasks[2].majority()]) | nothing)
    rows.append(_row("NB-SVM", tasks, [None, None, score_nb_svm(tasks[2])]) | nothing)

    def column(place: int) -> dict[str, float]:
        return {system: scores[place] for system, scores in scores_of_systems.items()}

    findings = []
    for place, task in enumerate(tasks[:2]):
        best = max(score for system, score in column(place).items() if system != SIF)
        claim = f"SIF's features are at most {_ALIKE:g} points below the best trained model on {task.name}"
        findings.append(Finding(claim, scores_of_systems[SIF][place] >= best - _ALIKE, list_values(column(place))))
    last = column(2)
    claim = f"on sentiment the better LSTM is at least {_ALIKE:g} points above SIF's features and trained averages"
    averages = max(last[SIF], last["PP"], last["DAN"])
    findings.append(Finding(claim, max(last[LSTM], last[OPEN_LSTM]) >= averages + _ALIKE, list_values(last)))
    claim = "on sentiment the LSTM with output gate is above the one without"
    findings.append(
        Finding(
            claim, last[LSTM] > last[OPEN_LSTM], list_values({system: last[system] for system in (LSTM, OPEN_LSTM)})
        )
    )
    return ResultTable(tuple(rows), tuple(findings))


def _row(
    system: str, tasks: tuple[SupervisedTask, ...], scores: list[float] | list[float | None], ending: str = ""
) -> dict[str, str | float | None]:
    named = zip(tasks, scores, strict=True)
    return {"system": system} | {
        f"{task.name}{ending}": None if score is None else round(score, 2 if ending else 1) for task, score in named
    }


_VECTORS = "GloVe 6B of 50 dimensions for GloVe 840B of 300; sts12, sts16 and SICK's trial part for STS 2012 to 2015"
_KINDS = (
    "SN is learned by the command vectors from 3 million words of Wikipedia, the 8,000 commonest, of 50 dimensions, "
    "with the first seed; PARAGRAM-PHRASE is the shipped bundle's words, or what --norms-of names"
)

_EXPERIMENTS = (
    Experiment(
        "sif-table-2", "SIF, Table 2", "Supervised similarity, entailment and sentiment",
        f"SICK's trial part is scored; 10,000 of 67,349 phrases of sentiment; {ENCODER_NOTE}", score_supervised,
        learns=True, labels=True,
    ),
    Experiment(
        "sif-table-3", "SIF, Table 3", "Supervised tasks with the order of words shuffled",
        f"SICK's trial part is scored; 10,000 of 67,349 phrases of sentiment; {ENCODER_NOTE}", score_shuffled,
        learns=True, labels=True,
    ),
    Experiment(
        "sif-table-7", "SIF, Table 7", "Natural language inference",
        f"SNLI's development part for its training part, and the pair's head for three more layers; {ENCODER_NOTE}",
        score_inference, learns=True, labels=True,
    ),
    Experiment(
        "sif-table-7-layers", "SIF, Table 7", "Natural language inference below three layers",
        f"SNLI's development part for its training part; {ENCODER_NOTE}", partial(score_inference, joined=True),
        learns=True, labels=True,
    ),
    Experiment(
        "sif-table-8", "SIF, Table 8", "Reviews with many and with few labels, SIF against NB-SVM",
        "1,707 reviews of IMDB for 25,000; GloVe 6B of 50 dimensions for GloVe 840B of 300", score_by_labels,
        learns=True, labels=True,
    ),
    Experiment(
        "sif-table-6", "SIF, Tables 1 and 6", "Averages, tf-idf, weights (W), removal (R) and both (WR)",
        _VECTORS, ablate_given,
    ),
    Experiment(
        "sif-table-6-learned", "SIF, Table 6", "The same over vectors that are learned here",
        f"sts12, sts16 and SICK's trial part for STS 2012 to 2015; {_KINDS}", ablate_learned, learns=True,
        raw=True,
    ),
    Experiment(
        "sif-figure-1", "SIF, Figure 1", "word2vec's subsampling of words against SIF's weights", "the paper's own",
        compare_subsampling, drawing=Drawing("p", ("word2vec", "SIF, a = 1e-4"), logarithmic=True),
    ),
    Experiment(
        "sif-figure-2a", "SIF, Figure 2a", "WR over the parameter a, with three kinds of vectors",
        f"{_VECTORS}; {_KINDS}", score_parameters, learns=True, raw=True,
        drawing=Drawing("a", (GIVEN, SN, PHRASE), logarithmic=True),
        note="The paper's third kind is PARAGRAM-SL999, of words alone; PARAGRAM-PHRASE has learned from phrases how "
        "much words weigh, and weighing them again takes from it.",
    ),
    Experiment(
        "sif-figure-2b", "SIF, Figure 2b", "WR over sources of word frequencies", _VECTORS,
        score_frequency_sources,
    ),
    Experiment(
        "sif-common-words", "SIF, section 4.1", "Words nearest to the common component of each task", _VECTORS,
        find_component_words,
    ),
)  # fmt: skip

PAPER = Paper(
    "SIF",
    "Arora, Liang, Ma: A simple but tough-to-beat baseline for sentence embeddings, 2017",
    (
        Item("Figure 1", "word2vec's subsampling against SIF's weights", "curves alike", ("sif-figure-1",)),
        Item("Tables 1 and 5", "all systems, with and without training", "PSL+WR 59.5, PP 58.7 on STS 2012",
             ("sif-table-6", "all-systems"), "vectors of skip-thought cannot be had"),
        Item("Table 2", "supervised similarity, entailment, sentiment", "SIF 86.0, 84.6, 82.2",
             ("sif-table-2",), "vectors of skip-thought cannot be had"),
        Item("Table 3", "order of words shuffled", "every recurrent model falls", ("sif-table-3",)),
        Item("Figure 2a", "the parameter a", "best from 1e-3 to 1e-4", ("sif-figure-2a",)),
        Item("Figure 2b", "the source of word frequencies", "almost the same", ("sif-figure-2b",)),
        Item("Section 4.1", "words nearest to the common component", "just, when, even, one, up, little",
             ("sif-common-words",)),
        Item("Table 6", "weights, removal and both", "GloVe, 2012: 52.5, 54.0, 55.6, 56.2",
             ("sif-table-6", "sif-table-6-learned")),
        Item("Table 7", "SNLI", "SIF 78.2, LSTM 77.6", ("sif-table-7", "sif-table-7-layers"),
             "SNLI's training part cannot be had"),
        Item("Table 8", "IMDB against NB-SVM", "50,000 labels .85, .91; 200 labels .77, .73",
             ("sif-table-8",), "IMDB but 2,440 reviews cannot be had"),
    ),
    experiments=_EXPERIMENTS,
)  # fmt: skip
