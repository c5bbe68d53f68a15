"""MTEB's encoder, and the description of a model in its tables."""

from __future__ import annotations

from typing import Any

from mteb.models import ModelMeta
from mteb.models.abs_encoder import AbsEncoder

from gramvec.embed.embedder import Embedder
from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError
from gramvec.integrations.models import ModelOrName, embed_texts, open_model


class MtebEncoder(AbsEncoder):
    """Encoder for `mteb.evaluate` with vectors of length 1. Long texts are cut, prompts are ignored.

    Args:
        model: A name, a folder or an Embedder.
    """

    def __init__(self, model: ModelOrName = "gramvec-en") -> None:
        self.model = open_model(model)
        self.mteb_model_meta = mteb_meta(self.model)

    def encode(self, inputs: Any, **settings: Any) -> Vectors:
        """Return float32[n, d] of MTEB's batches, which have their texts under `text`."""
        return embed_texts(self.model, [text for batch in inputs for text in batch["text"]])


def mteb_meta(model: ModelOrName = "gramvec-en") -> Any:
    """Return a ModelMeta with the name gramvec/NAME and the first 12 digits of the digest as the revision."""
    embedder = open_model(model)
    if not isinstance(embedder, Embedder):
        raise InputError("MTEB needs a model's digest and size; give a name, a folder or an Embedder", field="model")
    size = sum(file.stat().st_size for file in embedder.bundle.path.iterdir() if file.is_file())
    parameters = embedder.manifest.rows * embedder.dimension
    return ModelMeta(
        loader=_load,
        loader_kwargs={"folder": str(embedder.bundle.path)},
        name=f"gramvec/{embedder.name}",
        revision=embedder.digest[:12],
        release_date=None,
        languages=["eng-Latn"],
        n_parameters=parameters,
        n_embedding_parameters=parameters,
        memory_usage_mb=round(size / 2**20, 1),
        max_tokens=None,
        embed_dim=embedder.dimension,
        license="apache-2.0",
        open_weights=True,
        public_training_code=None,
        public_training_data=None,
        framework=["NumPy"],
        similarity_fn_name="cosine",
        use_instructions=False,
        training_datasets=None,
    )


def _load(name: str, *, folder: str, **settings: Any) -> MtebEncoder:
    """Open a model for ModelMeta, whose revision and device are ignored."""
    return MtebEncoder(folder)
