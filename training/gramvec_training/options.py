"""The options of commands that train: a record of each, which goes from the command line to the run.

A field is an option of the same name, or the `flag` that it names; its description is the help.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, ValidationError

from gramvec.errors import InputError
from gramvec.jobs.tables.inputs import Form
from gramvec.runtime.base import Device
from gramvec_training.config import SifWeights
from gramvec_training.registry import describe_first_error
from gramvec_training.sections import (
    FileLayout,
    Number,
    OnBad,
    Penalty,
    Positive,
    PositiveCount,
    Strict,
    TableFormat,
    UnknownWords,
    WordRule,
)

HeldOutShare = Annotated[float, Field(ge=0, le=0.5)]

TEACHER_CACHE = Path("runs/teachers")


def _option(description: str, *, default: Any = None, required: bool = False, **extra: str) -> Any:
    """Return a field with the help of its option; `extra` may have a `flag` and a `metavar`."""
    keywords: dict[str, Any] = {"description": description, "json_schema_extra": dict(extra)}
    return Field(**keywords) if required else Field(default=default, **keywords)


class _Options(Strict):
    """Options that are one sentence where they are wrong."""

    def __init__(self, **values: Any) -> None:
        """Take the options by their names.

        Raises:
            InputError: One is unknown, missing, or out of its range.
        """
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InputError(f"{type(self).__name__}: {describe_first_error(error)}") from None


class RunOptions(_Options):
    """Options of a run that are not part of its config.

    Only `device` and `threads` change the result, in its last bits.

    cache: where teachers' vectors are kept from run to run; it is an option of `distill` only.
    """

    resume: bool = _option("Continue the run in --out from its checkpoint.", default=False)
    overwrite: bool = _option("Start again if --out holds a run already; replace the model in --export.", default=False)
    save_every: Penalty = _option("Seconds between checkpoints.", default=60.0)
    device: Device = _option("", default="auto")
    threads: PositiveCount = _option(
        "CPU threads of torch. The same number gives the same model bit for bit.", default=1
    )
    cache: Path = TEACHER_CACHE


class FileOptions(_Options):
    """Options of training on a file of one's own, without a config."""

    has_labels: ClassVar[bool] = False  # of texts, rather than pairs

    start: str | None = _option("Go on from this model, a name or a folder.", flag="--from", metavar="BUNDLE")
    input_format: Form | None = _option("Form of the file.  [by its ending]")
    delimiter: str | None = _option("Character between the columns of CSV, such as ';' or tab.  [by the header]")
    encoding: str | None = _option("Encoding of the file, such as cp1252.  [utf-8]")
    bad_rows: OnBad = _option(
        "What to do with rows of a file that have one column, an empty side, identical sides, are not UTF-8 or "
        "longer than 16 MiB.",
        default="skip",
    )

    @property
    def table_format(self) -> TableFormat | None:
        """Return the format of the file; None for what its ending names."""
        options = {"form": self.input_format, "delimiter": self.delimiter, "encoding": self.encoding}
        values = {name: value for name, value in options.items() if value is not None}
        return TableFormat.model_validate(values) if values else None


class PairOptions(FileOptions):
    """Options of training on a file of paraphrases: charagram-phrase, or the model that it goes on from."""

    layout: FileLayout | None = _option(
        "Layout of the file: a<TAB>b, wordings of one meaning separated by tabs, or PPDB's own. "
        "By default groups for *.groups.tsv, plain or compressed, else pairs."
    )
    held_out: HeldOutShare | None = _option("Share that is not trained on, for the report at the end.  [default: 0.1]")
    epochs: PositiveCount | None = _option("Passes over the file.  [default: 10, or 5 with --from]")
    rate: Positive | None = _option("Learning rate.  [default: 0.001, or 0.0005 with --from]")


class LabelOptions(FileOptions):
    """Options of training on a file of labeled texts."""

    has_labels: ClassVar[bool] = True

    held_out: HeldOutShare | None = _option(
        "Share that is not trained on: half of it chooses the model, half is for the report.  [default: 0.2]"
    )
    epochs: PositiveCount | None = _option("Passes over the file.  [default: 10, or 8 with --from]")
    rate: Positive | None = _option("Learning rate.  [default: 0.001]")


class WeightOptions(FileOptions):
    """Options of learning a weight for each n-gram of a model from a file of labeled pairs."""

    start: str = _option("The model, a name or a folder.", required=True, flag="--from", metavar="BUNDLE")


class TextOptions(_Options):
    """Options of distillation on files of texts, without a config."""

    texts: tuple[Path, ...] = _option("Learn from these texts, one a line, without a config.", default=())
    teacher: str | None = _option("A sentence-transformers model's folder, or an installed package with one.")
    dimension: PositiveCount = _option("With --texts: of the student, at most the teacher's.", default=300)
    epochs: PositiveCount = _option("With --texts: passes over them; a small file needs more.", default=10)
    cache: Path = _option("Where the teacher's vectors are kept; a text is computed once.", default=TEACHER_CACHE)


class SifOptions(_Options):
    """Options of a SIF model of word vectors and frequencies."""

    vectors: Path = _option(
        "Run folder of a word model; word vectors as text or .npy; or an installed package.", required=True
    )
    freq: Path = _option('Frequencies: "word count" a line, or word<TAB>centibels.', required=True)
    texts: tuple[Path, ...] = _option("Text, one a line, to take the components from; repeatable.", default=())
    a: Positive = _option("Words weigh a / (a + p(word)).", default=1e-3, flag="-a")
    components: Number = _option("Common components to remove; 0 for none (the paper's W without R).", default=1)
    weights: SifWeights = _option(
        "none: 1 for every word (the paper's R without W); idf: by --documents.", default="sif"
    )
    documents: tuple[Path, ...] = _option(
        "With --weights idf: text, one a line, or similarity sets; repeatable.", default=()
    )
    unknown_words: UnknownWords = _option(
        "row: they have the vector of UUUNKKK or the last one, as in the paper's code.", default="skip"
    )
    word_rule: WordRule = _option(
        "The second for texts in the tokens of the vectors, see tokens.", default="runs-and-symbols/1"
    )
    sample: PositiveCount = _option("Use at most N of the texts.", default=100_000)
    max_words: PositiveCount | None = _option("Keep only the N most frequent words.")
