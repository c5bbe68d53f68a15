"""Answers to a question beside the few codes that stand for them: typed, cut short, with words around."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from gramvec_training.data.made_tables import slips
from gramvec_training.data.made_tables.lexicon import LEXICON
from gramvec_training.data.made_tables.records import MadeTable, fold

CODES: tuple[tuple[str, ...], ...] = tuple(tuple(row) for row in LEXICON["answers"]["codes"])
_AROUND: list[str] = LEXICON["answers"]["around"]
_HEARD: list[list[str]] = [pair.split() for pair in LEXICON["answers"]["heard"]]
# Answers of a table, at most.
NUMBERS = (8, 12, 30, 60, 120)
# Answers that are none of the codes.
OTHERS = 0.12
# Lists are left out in so many parts.
PARTS = 5


def make_answers(number: int, drawn: Random) -> MadeTable:
    """Return answers, each once, beside the codes of a list: the same list for numbers that are len(CODES) apart."""
    place = number % len(CODES)
    codes = CODES[place]
    strange = sorted({code for row in CODES for code in row} - set(codes))
    code_of = {fold(code): at for at, code in enumerate(codes)}
    answers: dict[str, tuple[str, int | None]] = {}
    for _ in range(drawn.choice(NUMBERS)):
        if drawn.random() < OTHERS:
            which, text = None, write_answer(drawn.choice(strange), strange, drawn)
        else:
            which = drawn.randrange(len(codes))
            text = write_answer(codes[which], codes, drawn)
        answers.setdefault(fold(text), (text, code_of.get(fold(text), which)))
    pairs = [(row, which) for row, (_, which) in enumerate(answers.values()) if which is not None]
    left = {"answer": [text for text, _ in answers.values()]}
    family = f"answers {place % PARTS + 1} of {PARTS}"
    return MadeTable(f"answers-{number}", family, "answers", left, {"code": list(codes)}, pairs)


def write_answer(code: str, codes: Sequence[str], drawn: Random) -> str:
    """Return a code as people answer it; no beginning of it that another code has, too."""
    way = drawn.random()
    text = code
    if way < 0.45:
        text = _write_as_heard(code, drawn) if drawn.random() < 0.2 else slips.slip(code, drawn)
        if drawn.random() < 0.15:
            text = slips.slip(text, drawn)
    elif way < 0.57:
        least = 1 if drawn.random() < 0.3 else 3
        text = code[: drawn.randint(least, max(least, len(code) - 1))]
        if sum(fold(other).startswith(fold(text)) for other in codes) > 1:
            text = code
    elif way < 0.82:
        text = drawn.choice(_AROUND).format(code)
        if drawn.random() < 0.2:
            text = slips.slip_longest(text, drawn)
    elif way < 0.86:
        text = code[:-1] if code.endswith("s") else f"{code}s"
    elif way < 0.92:
        text = code.replace("-", drawn.choice((" ", ""))) if "-" in code else slips.split_or_join(code, drawn)
    case = drawn.random()
    return text.lower() if case < 0.4 else text.upper() if case < 0.5 else text


def _write_as_heard(code: str, drawn: Random) -> str:
    """Return a code of which a part is written as it sounds; with a slip where none can be."""
    ways = [(heard, written) for heard, written in _HEARD if heard in code]
    return code.replace(*drawn.choice(ways), 1) if ways else slips.slip(code, drawn)
