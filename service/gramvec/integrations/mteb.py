"""MTEB: an encoder for its tasks, and what its tables say of a model."""

from __future__ import annotations

from typing import Any

from mteb.models import ModelMeta
from mteb.models.abs_encoder import AbsEncoder

from gramvec.embed.embedder import Embedder
from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError
from gramvec.integrations.models import Model, opened, vectors_of


class MtebEncoder(AbsEncoder):
    """A model for `mteb.evaluate`: vectors of length 1, compared by cosine; long texts are cut, prompts ignored.

    model: a name, a folder or an Embedder.
    """

    def __init__(self, model: Model = "gramvec-en") -> None:
        self.model = opened(model)
        self.mteb_model_meta = mteb_meta(self.model)

    def encode(self, inputs: Any, **settings: Any) -> Vectors:
        """float32[n, d] of MTEB's batches, each of which has its texts as `text`."""
        return vectors_of(self.model, [text for batch in inputs for text in batch["text"]])


def mteb_meta(model: Model = "gramvec-en") -> Any:
    """A ModelMeta: the bundle's name as gramvec/NAME, the first 12 digits of its digest as the revision."""
    embedder = opened(model)
    if not isinstance(embedder, Embedder):
        raise InputError("MTEB wants a model's digest and size: give a name, a folder or an Embedder", field="model")
    size = sum(one.stat().st_size for one in embedder.bundle.path.iterdir() if one.is_file())
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
    """As ModelMeta calls it: with a revision and a device, which are the folder's."""
    return MtebEncoder(folder)
