"""Words and numbers of a folded text, each spelt by its value, so that equal tokens are what is equal.

2.50mg is "2.5" and "mg", -20 C is "-20" and "c", 14A is "14a", 1/2 is "0.5", 1980-02-01 is "19800201", S.R.L. is "srl",
A- is "a-". A number's unit is a token of its own, since one list names it and another does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gramvec.jobs.pairs.companies import UNSPACED, spell_forms
from gramvec.jobs.pairs.dates import date_order
from gramvec.jobs.pairs.numbers import RUN, CellStyle, has_decimal_comma, spell_run

# + or # behind letters belongs to them, and - behind one or two at the end of a word: C++, C#, A-, AB- are other things
# than C, A and AB.
TOKEN = re.compile(r"[^\W\d_]+[+#]+|[^\W\d_]{1,2}-(?!\S)|[^\W\d_]+|(?:(?<!\S)-)?\d+(?:\.\d+)?(?:[^\W\d_](?!\S))?")
_SYMBOLS = re.compile(r"\S+")
# A sign stands behind a space, but not between two numbers. A letter behind a house number is its own, unless it may be
# a unit, which a space may stand in front of.
_RUN = re.compile(
    rf"(?:(?P<sign>(?<![^\s(])(?<!\d\s)-)|(?<=\w)-)?(?P<before>(?<=[^\W\d_]))?(?P<run>{RUN})(?P<letter>[^\W\d_](?![^\W_]))?(?P<more>[^\W\d_])?"
)
UNIT_LETTERS = frozenset("glmvwkгл")
_has_spelling = re.compile(r"[-.,/]\d|\d[^\W_\d]").search
_has_dots = re.compile(r"[^\W\d_]\. ?[^\W\d_]\.|[ais]/s").search


def read_style(texts: Sequence[str]) -> CellStyle:
    """Return how a column of folded texts writes numbers and dates."""
    return CellStyle(has_decimal_comma(texts), date_order(texts))


def find_tokens(text: str, style: CellStyle) -> list[str]:
    """Return the tokens of a folded text. One without letters and digits is the runs of its symbols.

    Args:
        text: folded, see `tokens.fold_text`.
        style: how its column writes numbers and dates.
    """
    return TOKEN.findall(spell_text(text, style)) or _SYMBOLS.findall(text)


def spell_text(text: str, style: CellStyle) -> str:
    """Return a folded text with its numbers, dates and legal forms spelt as tokens."""
    has_dots = "." in text or "/" in text
    if (has_dots and _has_dots(text)) or (not text.isascii() and any(form in text for form in UNSPACED)):
        text = spell_forms(text)
    return _RUN.sub(lambda run: _spell(run, style), text) if _has_spelling(text) else text


def _spell(parts: re.Match[str], style: CellStyle) -> str:
    run, sign, letter = parts["run"], parts["sign"] or "", parts["letter"] or ""
    if parts["before"] is not None and run[0] == ".":
        run = run[1:]
    spelt = spell_run(run, style)
    is_house = (
        letter and not parts["more"] and parts["before"] is None and run.isdecimal() and letter not in UNIT_LETTERS
    )
    return f" {sign}{spelt}{'' if is_house else ' '}{letter}{parts['more'] or ' '}"
