"""What a character of work costs, learnt from the calls of a model: in its own time, and by the clock."""

from __future__ import annotations

# Seconds that one character of work is taken to cost until calls have been measured: ONNX Runtime on one core.
FIRST_COST_SECONDS = 0.3e-6
# How much of the past the measured cost keeps at each call, and the least work that teaches: a smaller call is mostly
# overhead, which a larger one does not have more of.
MEMORY = 0.9
TEACHING_COST = 512


class Pace:
    """Means over the calls, weighted towards the last ones."""

    def __init__(self) -> None:
        self._cost = float(TEACHING_COST)
        self._seconds = self._passed = TEACHING_COST * FIRST_COST_SECONDS

    @property
    def cost_seconds(self) -> float:
        """Seconds that the model needs for a character of work."""
        return self._seconds / self._cost

    @property
    def pace_seconds(self) -> float:
        """Seconds that go by for a character of work while there is some.

        More than `cost_seconds` where the model waits for its turn: for the event loop, or for another model.
        """
        return self._passed / self._cost

    def affordable(self, seconds: float) -> int:
        """Characters of work that the model does in this time."""
        return round(seconds / self.cost_seconds)

    def learn(self, cost: int, seconds: float, passed: float) -> None:
        """Take in a call of so much work, of its own seconds and those since the model was free for it."""
        if cost >= TEACHING_COST:
            self._cost = self._cost * MEMORY + cost
            self._seconds = self._seconds * MEMORY + seconds
            self._passed = self._passed * MEMORY + max(passed, seconds)
