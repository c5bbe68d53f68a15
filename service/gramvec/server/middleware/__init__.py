"""What every request passes: key, origin, limits, id, headers, counting, the log, and the last resort.

May import routes and below. A new check of every request is a step of `FrontDoor`, before its body is read.
"""

from __future__ import annotations

from gramvec.server.middleware.front_door import BUG, PUBLIC_PATHS, FrontDoor

__all__ = [
    "BUG",
    "PUBLIC_PATHS",
    "FrontDoor",
]
