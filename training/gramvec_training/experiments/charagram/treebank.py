"""The tagged sentences of the tagging experiments: to learn from, to choose an epoch on, and to score."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gramvec.errors import InputError
from gramvec_training.experiments.common import Inputs
from gramvec_training.readers import TaggedSentence, read_tagged

_OTHER = "wsj_sample.tsv"  # beside a treebank: scored, never learned from


@dataclass(frozen=True)
class Treebank:
    """The tagged sentences that are learned from, that an epoch is chosen on, and that are scored."""

    learned: list[TaggedSentence]
    held_out: list[TaggedSentence]
    scored: list[TaggedSentence]
    other: list[TaggedSentence]  # of other texts than those learned from; none where there is no such file

    @functools.cached_property
    def digest(self) -> str:
        """16 hex digits over all of it."""
        return hashlib.sha256(repr((self.learned, self.held_out, self.scored, self.other)).encode()).hexdigest()[:16]

    def commonest(self, sentences: Sequence[TaggedSentence]) -> float:
        """Accuracy, times 100, of the tag that each word had most often; of an unknown word the commonest of all."""
        counts: dict[str, Counter[str]] = {}
        for one in self.learned:
            for word, tag in zip(one.words, one.tags, strict=True):
                counts.setdefault(word, Counter())[tag] += 1
        (usual, _), *_ = sum(counts.values(), Counter[str]()).most_common(1)
        best = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
        places = [pair for one in sentences for pair in zip(one.words, one.tags, strict=True)]
        return 100 * float(np.mean([best.get(word, usual) == tag for word, tag in places]))


@functools.lru_cache(1)
def treebank(folder: Path) -> Treebank:
    """The parts of a folder of Universal Dependencies, which end in train, dev and test, and wsj_sample.tsv beside.

    Raises InputError where there is not one file of each part.
    """
    other = folder / _OTHER
    learned, held_out, scored = (_part(folder, name) for name in ("train", "dev", "test"))
    return Treebank(learned, held_out, scored, read_tagged(other) if other.is_file() else [])


def _part(folder: Path, name: str) -> list[TaggedSentence]:
    found = [path for ending in ("", ".gz") for path in sorted(folder.glob(f"*-{name}.conllu{ending}"))]
    if len(found) != 1:
        what = f"{len(found)} files *-{name}.conllu or .gz"
        raise InputError(f"{folder} has {what}; give --tagged a folder with one.")
    return read_tagged(found[0])


def tagged(inputs: Inputs) -> Treebank:
    """The treebank of the inputs. Raises InputError where they have none."""
    if inputs.tagged is None:
        raise InputError("This experiment learns taggers: give --tagged, a folder of a treebank in CoNLL-U.")
    return treebank(inputs.tagged)
