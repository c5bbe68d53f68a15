"""The vocabulary: which n-gram and which word owns which row, as arrays that are used as they lie in the file."""

from __future__ import annotations

from gramvec.vocab.memo import Memo
from gramvec.vocab.vocabulary import Entry, Vocabulary

__all__ = ["Entry", "Memo", "Vocabulary"]
