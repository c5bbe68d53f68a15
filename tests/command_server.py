"""A process that has imported the commands, and runs each in a fork of itself: tests start hundreds.

It reads lines of JSON from the socket whose descriptor is its argument: the arguments of a command, beside which its
standard streams are sent. It answers a line with the id of the process, and one with its exit code.
"""

from __future__ import annotations

import gc
import io
import json
import os
import socket
import sys
from importlib import import_module

import gramvec
from gramvec.cli import main
from gramvec.cli.main import COMMANDS

LONGEST_LINE = 1 << 20


def next_command(connection: socket.socket) -> tuple[list[str], list[int]] | None:
    """Return the arguments and streams of the next command; None at the end."""
    line, streams, _, _ = socket.recv_fds(connection, LONGEST_LINE, 3)
    while line and not line.endswith(b"\n"):
        line += connection.recv(LONGEST_LINE)
    return (json.loads(line), streams) if line else None


def become(arguments: list[str], streams: list[int]) -> None:
    """Make this process the one that runs a command."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv = ["gramvec", *arguments]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8", "surrogateescape")
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(number, "w", closefd=False)), "utf-8", errors, line_buffering=number == 2
        )
        for number, errors in ((1, "surrogateescape"), (2, "backslashreplace"))
    )


def serve(connection: socket.socket) -> bool:
    """Run commands until there are no more. Returns True in the process of a command, and False at the end."""
    while (command := next_command(connection)) is not None:
        process = os.fork()
        if not process:
            connection.close()
            become(*command)
            return True
        for stream in command[1]:
            os.close(stream)
        connection.sendall(f"{process}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        connection.sendall(f"{code}\n".encode())
    return False


if __name__ == "__main__":
    for module in {module for module, _ in COMMANDS.values() if module != "gramvec.cli.serve"}:
        import_module(module)
    gramvec.dedupe(["a car", "a cat"])  # reads the tables that matching needs
    gc.freeze()  # so that a fork's collector copies none of it
    if serve(socket.socket(fileno=int(sys.argv[1]))):
        main()
