"""From a config to a finished run folder, and from that to a bundle: what plugs the other rooms together.

It imports all rooms but the command line and the experiments. A new way of learning is a plan here.
"""

from __future__ import annotations

from gramvec_training.runs.answers import Labels, Scores
from gramvec_training.runs.beginning import begun_encoder
from gramvec_training.runs.exporting import export_run
from gramvec_training.runs.folder import (
    CHECKPOINT,
    INPUT,
    Begun,
    Run,
    begin_run,
    begun_run,
    is_begun,
    is_finished,
    load_run,
    make_way,
)
from gramvec_training.runs.heads import LearnedHead, head_settings, learn_head, make_way_for_head
from gramvec_training.runs.labelled_pairs import learn_identity
from gramvec_training.runs.plan import Plan
from gramvec_training.runs.quick import (
    command_line,
    model_name,
    pairs_config,
    shown,
    sif_config,
    texts_config,
    with_teacher,
)
from gramvec_training.runs.run import carry_out
from gramvec_training.runs.scoring import run_model
from gramvec_training.runs.sif import word_vectors
from gramvec_training.runs.start import Started, read_start
from gramvec_training.runs.sweep import (
    FIGURE_2A,
    TABLE_5_ORDERS,
    TABLE_5_SIZES,
    Cell,
    check_mean,
    ngram_cells,
    result,
    sif_cells,
    tables,
    to_json,
)
from gramvec_training.runs.vectors import Counting, WordVectors, learn_word_vectors

__all__ = [
    "CHECKPOINT",
    "FIGURE_2A",
    "INPUT",
    "TABLE_5_ORDERS",
    "TABLE_5_SIZES",
    "Begun",
    "Cell",
    "Counting",
    "Labels",
    "LearnedHead",
    "Plan",
    "Run",
    "Scores",
    "Started",
    "WordVectors",
    "begin_run",
    "begun_encoder",
    "begun_run",
    "carry_out",
    "check_mean",
    "command_line",
    "export_run",
    "head_settings",
    "is_begun",
    "is_finished",
    "learn_head",
    "learn_identity",
    "learn_word_vectors",
    "load_run",
    "make_way",
    "make_way_for_head",
    "model_name",
    "ngram_cells",
    "pairs_config",
    "read_start",
    "result",
    "run_model",
    "shown",
    "sif_cells",
    "sif_config",
    "tables",
    "texts_config",
    "to_json",
    "with_teacher",
    "word_vectors",
]
