"""From a finished run to a bundle."""

from __future__ import annotations

from pathlib import Path

from gramvec.bundle.bundle import Manifest
from gramvec.text.featurizer import Featurizer
from gramvec_training.configuration import Export, Precision
from gramvec_training.encoders import Encoder, encoder_function, restored_encoder
from gramvec_training.export import (
    NO_MEMO,
    can_have_memo,
    choose,
    export_bundle,
    graphed,
    scaled,
    whitening_transform,
)
from gramvec_training.reporting import write_card
from gramvec_training.runs.folder import Run, spec_of

_BYTES = {"float32": 4, "float16": 2, "int8": 1}


def export_run(
    run: Run, path: Path, *, export: Export | None = None, precision: Precision | None = None, name: str | None = None
) -> Manifest:
    """Write the bundle of a finished run, checked against torch on texts of its training data.

    export: instead of what the run's config says; precision: instead of what that says.
    """
    model = run.config.model
    spec = spec_of(run.config)
    export = export or run.config.export
    precision = precision or export.precision
    name = name or model.name
    featurizer = Featurizer(spec, run.vocabulary)
    encoder = _shaped(run, export, featurizer)
    has_memo = can_have_memo(spec, sums=graphed(encoder).sums)
    kept = {key: value for key, value in run.record.items() if key not in ("loss", "dev", "kind", "name")}
    return export_bundle(
        path,
        name=name,
        kind=model.kind,
        spec=spec,
        vocabulary=run.vocabulary,
        encoder=encoder,
        precision=precision,
        parity_texts=run.texts,
        memo=(
            choose(run.repeated, featurizer, chunks=export.memo_chunks, edges=export.memo_edges)
            if has_memo
            else NO_MEMO
        ),
        provenance={"licence": model.licence, **kept, "export": export.model_dump(mode="json")},
        card=write_card(
            {**run.record, "export": export.model_dump(mode="json")},
            name=name,
            precision=precision,
            table_bytes=run.encoder.table.numel() * _BYTES[precision],
        ),
    )


def _shaped(run: Run, export: Export, featurizer: Featurizer) -> Encoder:
    if not export.scales and not export.whitening:
        return run.encoder
    scales = {str(kind): scale for kind, scale in export.scales.items()}
    arrays = run.encoder.arrays()
    table = scaled(arrays["table"], run.vocabulary.entries(), scales)
    if export.whitening:  # which the config allows for a linear bag alone
        bag = restored_encoder(run.config.composition, arrays | {"table": table}, run.encoder.dimension)
        table = table @ whitening_transform(encoder_function(bag, featurizer)(run.texts), export.whitening)
    return restored_encoder(run.config.composition, arrays | {"table": table}, run.encoder.dimension)
