"""The files that a run reads: paraphrases, plain texts, development sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from gramvec_training.configuration.schedule import Every
from gramvec_training.configuration.strict import Count, Strict

Layout = Literal["pairs", "groups", "ppdb"]
TextLayout = Literal["lines", "columns", "words", "similarity"]
Measure = Literal["pearson", "spearman"]
OnBad = Literal["skip", "refuse"]


class DataSet(Strict):
    """A file of paraphrases, or of texts with labels, and its share of an epoch; see gramvec_training.data."""

    path: Path
    licence: str = "not stated"
    layout: Layout | None = None
    labelled: bool = False  # a label and a text a row: texts of one label are pairs, and negatives of all others
    bad_rows: OnBad = "skip"
    max_groups: Count | None = None  # keep so many groups, drawn once: bounds the memory
    pairs_per_group: Count = 1
    cap: Count | None = None  # at most so many pairs an epoch
    held_out: Annotated[float, Field(ge=0, le=0.5)] = 0.0  # share that is not trained on, for a report at the end

    @property
    def name(self) -> str:
        """The file's name up to its first dot."""
        return self.path.name.split(".", 1)[0]


class TextSource(Strict):
    """A file of texts. `columns` takes the columns of a TSV file, `words` the first word of each line of a counts file,
    `similarity` the texts of score<TAB>text<TAB>text lines, from a file or from all .tsv files of a folder.

    `sentences` cuts a line where a sentence ends. Texts shorter than two characters (but for words) or longer than
    `max_characters` are left out; of the others at most `cap` are taken, at random, or, of words, the first. The texts
    of the sources marked `first` come before all others, so that a limit on the number of texts does not touch them.
    """

    path: Path
    licence: str = "not stated"
    layout: TextLayout = "lines"
    columns: Count | None = None  # of a TSV file; all without it
    sentences: bool = False
    max_characters: Annotated[int, Field(ge=2)] | None = None
    cap: Count | None = None
    first: bool = False

    @property
    def name(self) -> str:
        """The file's name up to its first dot."""
        return self.path.name.split(".", 1)[0]


class Dev(Strict):
    """Development sets (folders of score<TAB>text<TAB>text files), scored at the end and every so many steps."""

    sets: tuple[Path, ...] = ()
    every: Every | None = None


class Select(Strict):
    """The model that is kept: of those after every so many steps, the one with the best score on a development set.

    `set` is a file of score<TAB>text<TAB>text lines, or a folder of them, whose mean counts. The papers: every quarter
    of an epoch, Spearman, on an annotated sample of PPDB or on a set of words.
    """

    set: Path
    measure: Measure = "spearman"
    every: Every = "quarter"
