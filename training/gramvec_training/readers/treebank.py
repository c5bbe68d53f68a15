"""Text -> Treebank tokens between single spaces: what published word vectors are of, and the word rule white-space/1.

The conventions are those of the Penn Treebank (Marcus et al., 1993) as its tokeniser has them: punctuation is apart,
contractions are two tokens ("do n't", "John 's"), words with a hyphen stay whole, brackets and quotes stay as they are
in the vectors of GloVe. A full stop is a token at the end of a text alone, since "U.S." and "3.14" are one.
"""

from __future__ import annotations

import re

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(^|[\s(\[{<])\""), r"\1 `` "),  # an opening quote
    (re.compile(r'"'), " '' "),
    (re.compile(r"(?<!\.)\.{2,}"), " ... "),
    (re.compile(r"([:,])(?!\d)"), r" \1 "),  # 1,000 and 3:45 are one
    (re.compile(r"(?<!\d)([:,])(?=\d)"), r" \1 "),
    (re.compile(r"([;@$%&?!()\[\]{}<>]|--+|[\u2013\u2014])"), r" \1 "),
    (re.compile(r"([^\s.])\.(?=[\s\"')\]}>]*$)"), r"\1 . "),  # the full stop of the text
    (re.compile(r"(^|\s)'(?=[^\s'])(?!(?:s|m|d|ll|re|ve|t|em|til|cause)\b)", re.IGNORECASE), r"\1 ' "),
    (re.compile(r"([^\s'])('s|'m|'d|'ll|'re|'ve)(?=\W|$)", re.IGNORECASE), r"\1 \2 "),
    (re.compile(r"(\w)(n't)(?=\W|$)", re.IGNORECASE), r"\1 \2 "),
    (re.compile(r"([^\s'])'(?=\s|$)"), r"\1 ' "),  # of the plural, or a closing one
    (re.compile(r"\b(can)(not)\b", re.IGNORECASE), r"\1 \2"),
    (re.compile(r"\b(gon|wan)(na)\b", re.IGNORECASE), r"\1 \2"),
    (re.compile(r"\b(got)(ta)\b", re.IGNORECASE), r"\1 \2"),
    (re.compile(r"(^|\s)#(?=\w)"), r"\1"),  # the word of a tag, as in the papers' Twitter data
)


def treebank_tokens(text: str) -> str:
    """The tokens of a text with a space between them; "" for white space alone. Case stays."""
    text = text.translate(_QUOTES)
    for pattern, tokens in _RULES:
        text = pattern.sub(tokens, text)
    return " ".join(text.split())
