"""How many parameters the papers' composition functions have, at the papers' own sizes."""

from __future__ import annotations

import torch

from gramvec_training.configuration import (
    BagSettings,
    CharCnnSettings,
    EncoderSettings,
    IrnnSettings,
    LstmSettings,
    RnnSettings,
)
from gramvec_training.encoders import build_encoder
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row

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
_TEXT = 100  # characters: of 3 orders, so many n-grams each, and 300 numbers an n-gram


def numbers_of_parameters(inputs: Inputs) -> Outcome:
    """CHARAGRAM, section 4.4; of word models the composition alone."""
    del inputs
    rows: list[Row] = []
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
    others = all(value for name, value in same.items() if name != _SWAPPED)
    counted = next(int(row["parameters"] or 0) for row in rows if row["what"] == _SWAPPED)
    return Outcome(
        tuple(rows),
        (
            Finding("all counts but charLSTM's are the paper's", others, "see the table", sure=True),
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
