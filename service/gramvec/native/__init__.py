"""The loops of features and runtime in C, built when the package is installed (see hatch_build.py).

`loops` is the module gramvec.native.loops, whose contract is in loops.pyi, or None where it was not built.
A new loop is a header here, with a slower reference in Python above it; sizes are checked before memory is taken.
"""

from __future__ import annotations

try:
    from gramvec.native import loops
except ImportError:
    loops = None  # type: ignore[assignment]

MISSING = (
    "the compiled loops are not there: install gramvec where a C compiler is (Debian: apt install gcc python3-dev), "
    "or from a wheel"
)

__all__ = ["MISSING", "loops"]
