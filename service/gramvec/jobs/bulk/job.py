"""`EmbedJob`: a file of texts into a file of vectors, by a model that is named."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import model_validator

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.embed.embedder import MAX_CHARACTERS
from gramvec.embed.loading import load
from gramvec.embed.vectors import Space, VectorPrecision
from gramvec.jobs.bulk.embed_file import COLUMN, EMBEDDING, Files, Options, embed_file
from gramvec.jobs.common.file_job import PositiveNumber, ThreadCount
from gramvec.jobs.common.input_file import InputFile
from gramvec.jobs.common.outcome import Done, report_done
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec.jobs.tables.staging import check_outputs
from gramvec.jobs.tables.writers import OutputForm
from gramvec.runtime.base import Device


class EmbedJob(InputFile):
    """Job of `gramvec embed`: embed the texts of a file.

    Example:
        >>> EmbedJob(source="titles.csv", output="titles.parquet", resume=True).run().rows  # doctest: +SKIP
        2

    Attributes:
        output: a .jsonl, .npy, .csv, .tsv or .parquet file; - is standard output.
        format: of the output; None goes by its ending.
        column: of the texts.
        embedding_column: of the vectors.
        model: name of a model, or a folder.
        device: that computes the vectors.
        space: the columns for meaning ("semantic"), for n-grams ("lexical"), or "both".
        normalize: vectors of length 1.
        dimensions: keep only the first ones.
        precision: of the numbers.
        truncate: cut a text at `max_characters` instead of refusing it.
        max_characters: of a text.
        resume: continue where a run with the same options was stopped.
        overwrite: replace an output that gramvec did not write.
        batch_size: lines that a core takes at a time; None for 2,048, on a GPU more.
        threads: None for all cores.

    The other attributes are those of `InputFile`.
    """

    output: Path
    format: OutputForm | None = None
    column: str = COLUMN
    embedding_column: str = EMBEDDING
    model: str = DEFAULT_MODEL
    device: Device = "auto"
    space: Space = "semantic"
    normalize: bool = True
    dimensions: PositiveNumber | None = None
    precision: VectorPrecision = "float32"
    truncate: bool = False
    max_characters: PositiveNumber = MAX_CHARACTERS
    resume: bool = False
    overwrite: bool = False
    batch_size: PositiveNumber | None = None
    threads: ThreadCount | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._files()
        return self

    def run(self, watch: JobWatch = NO_WATCH) -> Done:
        """Embed the texts, and return how many rows there were and which were bad. Raises as `embed_file` does."""
        check_outputs(self.output, inputs=[self.source], overwrite=self.overwrite)
        opened = load(self.model, device=self.device, max_characters=self.max_characters, threads=1, space=self.space)
        start = time.monotonic()
        with closing(opened) as embedder:
            done = embed_file(
                embedder, self._files(), Options(self.normalize, self.dimensions, self.truncate, self.precision),
                on_error=self.on_error, resume=self.resume, rows=self.batch_size, threads=self.threads, progress=watch,
            )  # fmt: skip
        report_done(done, self.output, time.monotonic() - start, watch)
        return done

    def _files(self) -> Files:
        """Return the files of the run. Raises InputError for an ending that no form has."""
        files = Files(self.source, self.output, self.file_format(), self.format, self.column, self.embedding_column)
        return replace(files, output_form=files.form_written)
