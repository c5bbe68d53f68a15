"""Types that several rooms share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Halves = npt.NDArray[np.float16]
Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# n texts to float32[n, d].
Encode = Callable[[Sequence[str]], Floats]
# n texts and n others to their cosines, [n].
Similarity = Callable[[Sequence[str], Sequence[str]], npt.NDArray[np.floating[Any]]]
