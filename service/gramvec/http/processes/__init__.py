"""The processes: a socket, a server in each, workers that are forked, watched, renewed, replaced and stopped.

May import door and below. A new thing to do for all workers is a message of `channel`.
"""

from __future__ import annotations

from gramvec.http.processes.channel import Message
from gramvec.http.processes.forked_servers import StandbyServer, WorkerServer
from gramvec.http.processes.listener import HostAndPort, UnixSocket, allow_descriptors
from gramvec.http.processes.orderly_server import BACKLOG, Server
from gramvec.http.processes.standby import standing_by
from gramvec.http.processes.workers import STOP_SIGNALS, Parent, signals_held, supervise

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
