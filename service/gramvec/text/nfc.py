"""Unicode normalization form C in linear time, whatever a stranger sends.

CPython before 2026 orders a run of combining marks by insertion: 64,000 of them in the wrong order take 20 s, with the
interpreter's lock held. Long runs are put into order here, which is all that it would do, only sooner.
"""

from __future__ import annotations

import re
import unicodedata

# A shorter run is left to the interpreter, which takes 36 us for as many marks at worst. No longer one can lie between
# two places so far apart, so that most texts are looked at in a few places only.
LONG_RUN = 128
# Starters by their class that decompose into marks alone. The other marks have the class of what they decompose into.
_OF_MARKS = {one: unicodedata.normalize("NFD", one) for one in "\u0f73\u0f75\u0f81"}

_long_runs = re.compile(rb"[^\0]{%d,}" % (LONG_RUN + 1)).finditer


def compose(text: str) -> str:
    """The text in Unicode normalization form C (UAX #15): what `unicodedata.normalize("NFC", text)` gives."""
    if len(text) > LONG_RUN:
        places = text[::LONG_RUN]
        if (any(map(unicodedata.combining, places)) or not _OF_MARKS.keys().isdisjoint(places)) and _has_long_run(text):
            text = _with_long_runs_ordered(text)
    return unicodedata.normalize("NFC", text)


def _has_long_run(text: str) -> bool:
    for place in range(0, len(text), LONG_RUN):
        begin = end = place
        while begin >= 0 and _is_mark(text[begin]):
            begin -= 1
        while end < len(text) and end - begin <= LONG_RUN + 1 and _is_mark(text[end]):
            end += 1
        if end - begin > LONG_RUN + 1:
            return True
    return False


def _is_mark(character: str) -> bool:
    return unicodedata.combining(character) != 0 or character in _OF_MARKS


def _with_long_runs_ordered(text: str) -> str:
    """A canonically equivalent text, whose long runs of marks are in canonical order."""
    for one, marks in _OF_MARKS.items():
        text = text.replace(one, marks)
    classes = bytes(map(unicodedata.combining, text))
    pieces: list[str] = []
    done = 0
    for run in _long_runs(classes):
        begin, end = run.span()
        # Stable: marks of one class stay in the order in which they stand.
        pieces += [text[done:begin], *sorted(text[begin:end], key=unicodedata.combining)]
        done = end
    return "".join([*pieces, text[done:]])
