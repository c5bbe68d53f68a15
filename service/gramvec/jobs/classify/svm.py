"""Linear support vector machines of many labels over the same sparse rows: scikit-learn's, one for each label.

A solver of our own, which read each row once for 16 labels in C, took less: `gramvec classify fit` had 1.4 CPU seconds
for SNIPS with 100 examples of each label and has 2.5 with this, of which 1.3 are the import; with all examples 3.3 and
4.8, for HWU64 4.5 and 7.1, and with 20 of each label 2.1 and 3.7. For 500 labels this step took a third, and for labels
of which a text has several a half to two thirds. It learned the same: of HWU64's test texts 90.3 % were right,
and 90.2 are.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gramvec.errors import import_extra
from gramvec.jobs.classify.targets import Targets
from gramvec.text.arrays import Floats

SEED = 0
PURPOSE = "learning a head"


def learn_svm(rows: Any, targets: Targets, strength: float) -> Floats:
    """Learn a support vector machine for each label.

    Args:
        rows: scipy.sparse.csr_matrix float32[n, d] with int32 indices.
        targets: of the n rows.
        strength: C.

    Returns:
        float32[d + 1, labels]: coefficients, and in the last row the intercepts. Zeros for a label without a row; 1 is
        the intercept of one that every row has.

    Raises:
        InputError: scikit-learn is not installed.
    """
    learner = import_extra("sklearn.svm", "classify", PURPOSE).LinearSVC(C=strength, random_state=SEED)
    doubles = rows.astype(np.float64)  # once, in the place of once for each label
    weights = np.zeros((rows.shape[1] + 1, targets.labels), np.float32)
    there = np.flatnonzero(targets.counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last of a thousand passes may leave it short of the optimum
        if len(targets.text) == targets.texts and len(there) > 2:  # a label each: rows are copied for all at once
            learner.fit(doubles, targets.label)
            weights[:-1, there], weights[-1, there] = learner.coef_.T, learner.intercept_
            return weights
        for label in there.tolist():
            has_it = np.zeros(rows.shape[0], np.bool_)
            has_it[targets.text[targets.label == label]] = True
            if has_it.all():
                weights[-1, label] = 1
            else:
                learner.fit(doubles, has_it)
                weights[:-1, label], weights[-1, label] = learner.coef_[0], learner.intercept_[0]
    return weights
