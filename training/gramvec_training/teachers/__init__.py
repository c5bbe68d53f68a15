"""Texts -> the vectors that a student learns: a transformer's, computed once and cached, or a bundle's.

It imports configuration alone, and the library. A new kind of teacher is a file here and a line in `open_teacher`.
"""

from __future__ import annotations

from gramvec_training.teachers.bundle import BundleTeacher
from gramvec_training.teachers.choice import Teacher, open_teacher
from gramvec_training.teachers.projection import Projection, principal_projection, projected
from gramvec_training.teachers.transformer import TransformerTeacher, model_folder, precision_on

__all__ = [
    "BundleTeacher",
    "Projection",
    "Teacher",
    "TransformerTeacher",
    "model_folder",
    "open_teacher",
    "precision_on",
    "principal_projection",
    "projected",
]
