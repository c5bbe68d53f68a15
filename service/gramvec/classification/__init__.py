"""Vectors into labels: a logistic regression, calibrated, stored as arrays beside its bundle's digest, without code.

May import files and errors. What learns a head imports scikit-learn; what applies one needs numpy alone. A new way to
learn is a file here.
"""

from __future__ import annotations

from gramvec.classification.form import UNKNOWN, LabelForm, LabelFormat
from gramvec.classification.head import MOST_LABELS, Head
from gramvec.classification.labelled import LabelledTexts, read_labelled
from gramvec.classification.learning import Report, fit_head

__all__ = [
    "MOST_LABELS",
    "UNKNOWN",
    "Head",
    "LabelForm",
    "LabelFormat",
    "LabelledTexts",
    "Report",
    "fit_head",
    "read_labelled",
]
