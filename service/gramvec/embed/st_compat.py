"""The methods of sentence-transformers over an Embedder, so that code written for it keeps working."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.vectors import VectorPrecision, Vectors, check_precision, quantize
from gramvec.errors import InputError
from gramvec.text.inputs import list_texts

BATCH_SIZE = 4_096
# What only None is taken for.
LEFT_OUT = ("pool", "chunk_size")


class SentenceEncoder(ABC):
    """`encode` and its kin over `stream`. Queries and documents are encoded alike: the models have no prompts."""

    dimension: int
    max_characters: int

    @abstractmethod
    def stream(
        self, texts: Iterable[str], *, batch_size: int | None, normalize: bool, dimensions: int | None, truncate: bool
    ) -> Iterator[Vectors]:
        """Yield the vectors of batch_size texts at a time; Embedder implements it."""

    def encode(
        self,
        sentences: str | Iterable[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = BATCH_SIZE,
        show_progress_bar: bool | None = None,
        precision: VectorPrecision = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        output_value: str | None = "sentence_embedding",
        device: object = None,
        **others: object,
    ) -> Any:
        """Return float32[n, k] for n sentences, float32[k] for one str, or another type if `precision` asks for one.

        A sentence longer than `max_seq_length` characters is cut, as in sentence-transformers. `convert_to_tensor`
        returns a torch tensor, `convert_to_numpy=False` a list of rows. `device` is the model's own or None; `pool` and
        `chunk_size` may be None.

        Raises:
            InputError: for a prompt, token embeddings or another device, and for what Embedder.embed refuses.
        """
        if prompt_name is not None or prompt:
            raise InputError("the models have no prompts; leave out prompt and prompt_name", field="prompt")
        if output_value != "sentence_embedding":
            raise InputError("the models have only vectors of sentences; leave out output_value", field="output_value")
        own = getattr(self, "device", None)
        if device is not None and own is not None and str(device).partition(":")[0] != own:
            sentence = f"the model is on {own}, where it was loaded; leave out device, or ask gramvec.load for {device}"
            raise InputError(sentence, field="device")
        for name, value in others.items():
            if value is not None or name not in LEFT_OUT:
                raise InputError(f"encode has no {name} here; leave it out", field=name)
        check_precision(precision, normalize=normalize_embeddings)
        texts = [sentences] if isinstance(sentences, str) else list_texts(sentences)
        blocks = self.stream(
            texts, batch_size=batch_size, normalize=normalize_embeddings, dimensions=truncate_dim, truncate=True
        )
        if show_progress_bar:
            from tqdm.auto import tqdm  # in notebooks the notebook's

            blocks = iter(tqdm(blocks, desc="Batches", total=-(-len(texts) // batch_size)))
        nothing = np.empty((0, truncate_dim or self.dimension), np.float32)
        vectors = np.concatenate([quantize(block, precision) for block in blocks] or [quantize(nothing, precision)])
        return _convert(vectors[0] if isinstance(sentences, str) else vectors, convert_to_numpy, convert_to_tensor)

    def encode_query(self, sentences: str | Iterable[str], **options: Any) -> Any:
        """Encode queries or documents as `encode` does, with its options: the models have no prompts."""
        return self.encode(sentences, **options)

    encode_document = encode_query

    def get_sentence_embedding_dimension(self) -> int:
        """Return the number of columns of a vector."""
        return self.dimension

    get_embedding_dimension = get_sentence_embedding_dimension

    @property
    def similarity_fn_name(self) -> str:
        """Return the name of the function that `similarity` computes: "cosine"."""
        return "cosine"

    @property
    def max_seq_length(self) -> int:
        """Return the maximum length of a text in characters, as there are no tokens. Setting it raises InputError."""
        return self.max_characters

    @max_seq_length.setter
    def max_seq_length(self, length: int) -> None:
        sentence = (
            f"texts are counted in characters, not tokens: give max_characters to gramvec.load, not {length} here"
        )
        raise InputError(sentence, field="max_seq_length")


def _convert(vectors: NDArray[np.generic], convert_to_numpy: bool, convert_to_tensor: bool) -> Any:
    if convert_to_tensor:
        try:
            torch = import_module("torch")
        except ImportError as error:
            sentence = "convert_to_tensor needs torch, which is not installed"
            raise InputError(sentence, field="convert_to_tensor") from error
        return torch.from_numpy(vectors)
    return vectors if convert_to_numpy else list(vectors)
