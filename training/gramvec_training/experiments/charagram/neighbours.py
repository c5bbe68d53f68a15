"""Nearest neighbours of two models side by side (CHARAGRAM, Tables 8 to 10), by the shipped bundles."""

from __future__ import annotations

from collections.abc import Sequence

import gramvec
from gramvec.embed.embedder import Embedder
from gramvec.errors import BundleError, InputError
from gramvec.explain.neighbors import nearest_ngrams, nearest_words_of
from gramvec_training.evaluation import PHRASES, candidate_words, find_sets
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row

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
# Table 9, and a word by which its neighbours are known to be right.
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
_NGRAMS = {
    "die": "_dy, _die, dead", "foo": "_foo, _eat, meal", "pee": "peed, hast, spee", "aiv": "waiv, aive, boli",
    "ngu": "ngue, uist, ongu",
}  # fmt: skip


def nearest_to_negations(inputs: Inputs) -> Outcome:
    """Table 8: the words nearest to "not" and a word."""
    models = _models(inputs)
    characters, words = (_nearest(model, PHRASES, models, inputs) for model in models)
    rows = tuple(
        {
            "phrase": phrase,
            models[0].name: ", ".join(one),
            "CHARAGRAM-PHRASE, paper": _NEGATIONS[phrase][0],
            models[1].name: ", ".join(other),
            "PARAGRAM-PHRASE, paper": _NEGATIONS[phrase][1],
        }
        for phrase, one, other in zip(PHRASES, characters, words, strict=True)
    )
    said = [phrase for phrase, near in zip(PHRASES, characters, strict=True) if set(near) & _NEGATIONS[phrase][2]]
    kept = [
        phrase
        for phrase, near in zip(PHRASES, words, strict=True)
        if near and near[0] in phrase.split() and not set(near) & _NEGATIONS[phrase][2]
    ]
    most = len(PHRASES) // 2
    claims = (
        (f"a word that says the same is among the {_SHOWN} nearest by n-grams", said),
        ("by words one of the phrase's own is nearest, and none that says the same is near", kept),
    )
    return Outcome(
        rows,
        tuple(Finding(f"{claim}, mostly", len(seen) > most, _phrases(seen, len(PHRASES))) for claim, seen in claims),
    )


def nearest_to_words(inputs: Inputs) -> Outcome:
    """Table 9: the words nearest to rare, misspelt and common ones."""
    models = _models(inputs)
    characters, others = (_nearest(model, tuple(_WORDS), models, inputs) for model in models)
    rows: list[Row] = [
        {
            "word": word,
            models[0].name: ", ".join(one),
            "CHARAGRAM-PHRASE, paper": paper,
            models[1].name: ", ".join(other) or "unknown",
        }
        for (word, (paper, _)), one, other in zip(_WORDS.items(), characters, others, strict=True)
    ]
    right = [
        word
        for (word, (_, stem)), near in zip(_WORDS.items(), characters, strict=True)
        if any(stem in one for one in near)
    ]
    return Outcome(
        tuple(rows),
        (
            Finding(
                f"a word of the same meaning is among the {_SHOWN} nearest, mostly, misspelt or not",
                len(right) > len(_WORDS) // 2,
                _phrases(right, len(_WORDS)),
                sure=True,
            ),
            Finding("the model of words has nothing for some of them", not all(others), "see the table"),
        ),
    )


def nearest_to_ngrams(inputs: Inputs) -> Outcome:
    """Table 10: the n-grams nearest to an n-gram; _ is a space."""
    model = _models(inputs)[0]
    rows: list[Row] = []
    overlapping = 0
    for ngram, paper in _NGRAMS.items():
        try:
            near = [one.text.replace(" ", "_") for one in nearest_ngrams(model, ngram, k=_SHOWN)]
        except InputError:
            near = []
        overlapping += any(ngram not in one for one in near)
        rows.append({"n-gram": ngram, model.name: ", ".join(near), "paper": paper})
    claim = "among the nearest are n-grams that do not hold it"
    return Outcome(tuple(rows), (Finding(claim, overlapping == len(rows), f"{overlapping} of {len(rows)}"),))


def _models(inputs: Inputs) -> tuple[Embedder, Embedder]:
    try:
        one, other = (gramvec.load(inputs.models / name) for name in ("charagram-phrase", "paragram-phrase"))
    except BundleError as error:
        raise InputError(f"This experiment needs the shipped models: give --models, their folder ({error}).") from error
    return one, other


def _nearest(model: Embedder, texts: Sequence[str], models: Sequence[Embedder], inputs: Inputs) -> list[list[str]]:
    candidates = candidate_words(models, find_sets(inputs.sets)[0])
    return [[one.text for one in found] for found in nearest_words_of(model, texts, candidates, k=_SHOWN)]


def _phrases(found: Sequence[str], number: int) -> str:
    return f"{len(found)} of {number}: {', '.join(found) or 'none'}"
