"""The processes: a socket, a server in each, workers that are forked, watched, renewed, replaced and stopped.

May import door and below. A new thing to do for all workers is a message of `channel`.
"""

from __future__ import annotations

from gramvec.server.processes.channel import Message
from gramvec.server.processes.forked_servers import StandbyServer, WorkerServer
from gramvec.server.processes.listener import HostAndPort, UnixSocket, allow_descriptors
from gramvec.server.processes.orderly_server import BACKLOG, Server
from gramvec.server.processes.standby import standing_by
from gramvec.server.processes.workers import STOP_SIGNALS, Parent, signals_held, supervise

__all__ = [
    "BACKLOG",
    "STOP_SIGNALS",
    "HostAndPort",
    "Message",
    "Parent",
    "Server",
    "StandbyServer",
    "UnixSocket",
    "WorkerServer",
    "allow_descriptors",
    "signals_held",
    "standing_by",
    "supervise",
]
