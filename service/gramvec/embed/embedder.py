"""The library's face: texts in, vectors out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.bundle.manifest import Manifest
from gramvec.embed.inputs import TruncationDirection, in_batches, prepare_texts
from gramvec.embed.reranking import RerankedText, rerank_scores
from gramvec.embed.st_compat import SentenceEncoder
from gramvec.embed.vectors import (
    RawEmbeddings,
    Space,
    Vectors,
    check_dimensions,
    check_space,
    cosine_matrix,
    cosine_pairs,
    finish,
    select_columns,
    vectors_among,
)
from gramvec.errors import InputError
from gramvec.lexical.sketch import LexicalSketch
from gramvec.lexical.sparse import SIF_A
from gramvec.lexical.top_k import top_k
from gramvec.runtime.base import Batching, Runtime
from gramvec.text.arrays import FeatureBatch
from gramvec.text.inputs import is_whole
from gramvec.threads import ThreadPool, count_cores

MAX_CHARACTERS = 65_536
# The fewest texts that are worth a thread of their own in a call that several share.
MIN_CHUNK = 512


class Embedder(SentenceEncoder):
    """Open model that embeds texts. Make one with `load`; calls may come from several threads.

    Texts may be any iterable of str: a list, a generator, an open file, an array of numpy, a column of pandas, polars
    or pyarrow. A pickled Embedder keeps the model's path and digest, and opens it again. In a child of a fork an
    Embedder goes on with threads of its own; on CUDA its calls raise BackendError. As a context manager it is closed at
    the end.

    Args:
        bundle: the opened bundle.
        runtime: computes the vectors.
        max_characters: the longest text that is accepted.
        threads: number of threads for one call of more texts than the runtime takes at once (see `batching`); None for
            one for each core of this process. They start at the first such call and do not change a byte of the result.
        space: the columns of an embedding: semantic (the meaning of a text), lexical (its n-grams, see
            gramvec.lexical), or both. `dimension` is their number.
        lexical: a sketch that replaces the bundle's own, see `adapted`.

    Attributes:
        own_lexical: the argument `lexical`.
    """

    def __init__(
        self,
        bundle: Bundle,
        runtime: Runtime,
        *,
        max_characters: int = MAX_CHARACTERS,
        threads: int | None = None,
        space: Space = "semantic",
        lexical: LexicalSketch | None = None,
    ) -> None:
        check_space(space)
        if max_characters < 1:
            raise InputError(f"max_characters: must be at least 1, got {max_characters}", field="max_characters")
        if threads is not None and threads < 1:
            raise InputError(f"threads: must be at least 1, got {threads}", field="threads")
        self.bundle = bundle
        self.space = space
        self.lexical = None if space == "semantic" else lexical or bundle.lexical
        if space != "semantic" and self.lexical is None:
            raise InputError(
                f"{bundle.manifest.name}: has no lexical columns; leave out space={space!r}", field="space"
            )
        self.own_lexical = lexical
        columns = 0 if self.lexical is None else self.lexical.columns
        self._widths = bundle.manifest.dimension, columns
        self.dimension = sum(self._widths) if space == "both" else columns or bundle.manifest.dimension
        self.max_characters = max_characters
        self.threads = threads or count_cores()
        self._runtime = runtime
        self._pool: ThreadPool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gramvec.Embedder {self.name}: {self.dimension} columns, runtime {self.runtime} on {self.device}>"

    @property
    def manifest(self) -> Manifest:
        """The bundle's manifest."""
        return self.bundle.manifest

    @property
    def name(self) -> str:
        """The model's name."""
        return self.manifest.name

    @property
    def kind(self) -> str:
        """Return the kind of model: gramvec, charagram-phrase, paragram-phrase, sif, ..."""
        return self.manifest.kind

    @property
    def digest(self) -> str:
        """SHA-256 of the bundle's manifest (64 hex digits); it changes if any file of the bundle does.

        With a lexical space it covers the space and the weights of n-grams, too.
        """
        if self.lexical is None:
            return self.bundle.digest
        return hashlib.sha256(f"{self.bundle.digest} {self.space} {self.lexical.digest}".encode()).hexdigest()

    @property
    def runtime(self) -> str:
        """The runtime in use, "onnx" or "native"."""
        return self._runtime.name

    @property
    def device(self) -> str:
        """The device in use, "cpu" or "cuda", as the runtime reports it."""
        return self._runtime.device

    @property
    def provider(self) -> str:
        """The runtime's own name of the device in use."""
        return self._runtime.provider

    @property
    def batching(self) -> Batching:
        """Return the batching that suits the runtime; any other batching gives the same bytes."""
        return self._runtime.batching

    def prepare(
        self,
        texts: Iterable[str],
        *,
        truncate: bool = False,
        truncation_direction: TruncationDirection = "right",
    ) -> list[str]:
        """Check the texts and return them, cut to max_characters if `truncate` (at the "right" or "left" end).

        Raises InputError, with the text's index, for anything but str, for a lone surrogate, and for a text
        over max_characters without `truncate`.
        """
        return prepare_texts(texts, self.max_characters, truncate=truncate, truncation_direction=truncation_direction)

    def raw(self, texts: Sequence[str]) -> RawEmbeddings:
        """Return the model's vectors of prepared texts before normalization, and how many rows were summed for each.

        A text has the same bytes in any batch. Raises BackendError if the runtime fails.
        """
        if len(texts) <= self.batching.texts:
            return self._raw(texts)
        vectors = np.empty((len(texts), self.dimension), np.float32)
        counts = np.empty(len(texts), np.int64)
        units = np.empty_like(vectors)

        spent: list[tuple[int, float]] = []

        def fill(chunk: slice) -> None:
            own = self._raw(texts[chunk])
            vectors[chunk], counts[chunk], units[chunk] = own.vectors, own.feature_counts, own.units
            spent.append((own.unknown, own.featurize_seconds))

        self._for_each_chunk(fill, len(texts))
        unknown, seconds = sum(count for count, _ in spent), sum(time for _, time in spent)
        return RawEmbeddings(vectors, counts, units, unknown, seconds)

    def vectors_of(self, batch: FeatureBatch) -> Vectors:
        """Return the model's vectors float32[n, d] of rows of its table, before normalization.

        Raises BackendError if the runtime fails.
        """
        return self._runtime.run(batch)

    def _raw(self, texts: Sequence[str]) -> RawEmbeddings:
        sums = self._runtime.embed(self.bundle.memoized, texts)
        if self.lexical is None:
            return RawEmbeddings.from_vectors(*sums)
        vectors, ngrams = self._with_lexical(texts, sums.vectors)
        # A text without a known feature is known all the same if it has n-grams.
        return RawEmbeddings.from_vectors(vectors, sums.counts + ngrams, sums.unknown, sums.featurize_seconds)

    def _sums(self, texts: Sequence[str]) -> Vectors:
        sums = self._runtime.embed(self.bundle.memoized, texts).vectors
        return sums if self.lexical is None else self._with_lexical(texts, sums)[0]

    def _with_lexical(self, texts: Sequence[str], sums: Vectors) -> tuple[Vectors, NDArray[np.int64]]:
        assert self.lexical is not None
        vectors, ngrams = self.lexical.join(texts, sums)
        return (vectors if self.space == "both" else np.ascontiguousarray(vectors[:, sums.shape[1] :])), ngrams

    def columns(self, space: Space | None, dimensions: int | None) -> tuple[slice, int]:
        """Return the columns of `space` (None: all) in an embedding, and how many of them `dimensions` keeps.

        Raises InputError if there are no vectors, or `dimensions` is not a number from 1 to their columns.
        """
        chosen = slice(None) if space is None else select_columns(space, self.space, self._widths[0])
        width = len(range(*chosen.indices(self.dimension)))
        check_dimensions(dimensions, width)
        return chosen, dimensions or width

    def adapted(self, texts: Iterable[str], *, a: float = SIF_A, space: Space = "both") -> Embedder:
        """Return this model with lexical columns whose n-gram weights are fitted to unlabeled texts.

        Give the texts that are compared: both of two tables, or the records that are searched. An n-gram that a share p
        of the texts holds weighs a / (a + p), so a frequent n-gram counts little. A million titles take seconds and
        140 MB. Both models use one runtime: closing one closes the other.
        Raises InputError for no texts, and for texts that NgramWeights.of_texts refuses.
        """
        known = self.bundle.lexical
        lexical = (
            LexicalSketch.of_texts(texts, a=a) if known is None else LexicalSketch.of_texts(texts, **known.shape, a=a)
        )
        return self.with_lexical(lexical, space)

    def with_lexical(self, lexical: LexicalSketch, space: Space) -> Embedder:
        """Return this model with another lexical sketch; both models use one runtime."""
        return Embedder(
            self.bundle,
            self._runtime,
            max_characters=self.max_characters,
            threads=self.threads,
            space=space,
            lexical=lexical,
        )

    @property
    def sketch(self) -> LexicalSketch | None:
        """Return the lexical sketch of the embedding, else of the bundle; None if it has none."""
        return self.lexical or self.bundle.lexical

    def _for_each_chunk(
        self, fill: Callable[[slice], None], texts: int, advance: Callable[[int], object] | None = None
    ) -> None:
        # A chunk bounds the memory of a call with a million texts.
        size = min(self.batching.texts, max(MIN_CHUNK, -(-texts // self.threads)))
        chunks = [slice(start, start + size) for start in range(0, texts, size)]
        if self.threads == 1 or len(chunks) == 1:
            filled: Iterable[object] = map(fill, chunks)
        else:
            if self._pool is None:
                self._pool = ThreadPool(self.threads, "gramvec-embed")
            filled = self._pool.map(fill, chunks)
        for chunk, _ in zip(chunks, filled, strict=True):
            if advance is not None:
                advance(min(chunk.stop, texts) - chunk.start)

    def embed(
        self,
        texts: Iterable[str],
        *,
        normalize: bool = True,
        dimensions: int | None = None,
        truncate: bool = False,
        truncation_direction: TruncationDirection = "right",
        space: Space | None = None,
        show_progress_bar: bool = False,
    ) -> Vectors:
        """Return one embedding a text, float32[n, k], in order.

        Args:
            texts: any iterable of str.
            normalize: scale to length 1. A text without a known feature may be all zeros and stays so.
            dimensions: keep the first k of d columns, before normalizing; None keeps all.
            space: "semantic" or "lexical" for only these columns, if the model was loaded for both.
            truncate: see prepare.
            truncation_direction: see prepare.
            show_progress_bar: draw a bar of tqdm on standard error, as `encode` does.

        Raises:
            InputError: `prepare` or `columns` refuses an argument.
            BackendError: the runtime fails.
        """
        prepared = self.prepare(texts, truncate=truncate, truncation_direction=truncation_direction)
        columns, width = self.columns(space, dimensions)  # before the work, not after it
        if len(prepared) <= self.batching.texts and not show_progress_bar:
            return finish(self._sums(prepared)[:, columns], normalize=normalize, dimensions=dimensions)
        vectors = np.empty((len(prepared), width), np.float32)

        def fill(chunk: slice) -> None:
            sums = self._sums(prepared[chunk])
            finish(sums[:, columns], normalize=normalize, dimensions=dimensions, out=vectors[chunk])

        if show_progress_bar:
            from tqdm.auto import tqdm  # in notebooks the notebook's

            with tqdm(total=len(prepared), desc="Texts", unit="text") as bar:
                self._for_each_chunk(fill, len(prepared), bar.update)
        else:
            self._for_each_chunk(fill, len(prepared))
        return vectors

    def similarity(self, left: Iterable[str] | Vectors, right: Iterable[str] | Vectors) -> Vectors:
        """Return the cosine of every left text with every right one, float32[n, m], in [-1, 1]; 0 for unknown texts.

        Vectors may stand for texts: float[n, d] or one float[d], an array, a tensor or a list of rows.
        """
        return cosine_matrix(self._compare(left), self._compare(right))

    def pair_similarity(self, left: Iterable[str] | Vectors, right: Iterable[str] | Vectors) -> Vectors:
        """Return the cosine of each left text (or vector) with its right one, float32[n].

        Raises InputError if there are not as many left texts as right ones.
        """
        left_raw, right_raw = self._compare(left), self._compare(right)
        if len(left_raw.vectors) != len(right_raw.vectors):
            raise InputError(
                f"{len(left_raw.vectors)} left texts and {len(right_raw.vectors)} right ones; give as many of each"
            )
        return cosine_pairs(left_raw, right_raw)

    similarity_pairwise = pair_similarity

    def _compare(self, texts: Iterable[str] | Vectors) -> RawEmbeddings:
        given_vectors = vectors_among(texts)
        if given_vectors is not None:
            vectors = np.atleast_2d(np.asarray(given_vectors, np.float32))
            if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
                sentence = f"vectors have the shape {given_vectors.shape}; give [n, {self.dimension}]"
                raise InputError(sentence, field="texts")
            return RawEmbeddings.from_vectors(vectors, np.count_nonzero(vectors, axis=1).astype(np.int64))
        return self.raw(self.prepare(texts))

    def rerank(
        self, query: str, texts: Iterable[str], *, top_n: int | None = None, truncate: bool = False
    ) -> list[RerankedText]:
        """Return the places and scores of texts for a query, the best first.

        A score is the share of the query's letters that the text has, weighted by how rare they are, plus the cosine
        of the meaning, as in a search (see `rerank_scores`): -1 to 3. Of equal scores the earlier text is first.

        Args:
            query: a text.
            texts: any iterable of texts; how rare letters are depends on all of them.
            top_n: the most texts to return; None for all.
            truncate: cut long texts instead of refusing them.

        Raises:
            InputError: an argument is not valid.
        """
        if top_n is not None and (not is_whole(top_n) or top_n < 1):
            raise InputError(f"top_n: must be a whole number from 1, got {top_n!r}", field="top_n")
        if not isinstance(query, str):
            raise InputError(f"query: must be one text, got {type(query).__name__}", field="query")
        (asked,) = self.prepare([query], truncate=truncate)
        prepared = self.prepare(texts, truncate=truncate)
        scores = rerank_scores(asked, prepared, self.raw([asked, *prepared]), self.sketch)
        places = top_k(scores, len(scores) if top_n is None else top_n)
        return [RerankedText(place, float(scores[place])) for place in places.tolist()]

    def stream(
        self,
        texts: Iterable[str],
        *,
        batch_size: int | None = None,
        normalize: bool = True,
        dimensions: int | None = None,
        truncate: bool = False,
        truncation_direction: TruncationDirection = "right",
        space: Space | None = None,
    ) -> Iterator[Vectors]:
        """Yield embeddings of an iterable of any length lazily, float32[at most batch_size, k] at a time.

        batch_size is None for as many as the runtime takes at once; the other arguments are those of `embed`.
        """
        embed = partial(
            self.embed, normalize=normalize, dimensions=dimensions, truncate=truncate,
            truncation_direction=truncation_direction, space=space,
        )  # fmt: skip
        return in_batches(texts, self.batching.texts if batch_size is None else batch_size, embed)

    def close(self) -> None:
        """Release the runtime and the threads; later calls raise BackendError."""
        self._runtime.close()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
