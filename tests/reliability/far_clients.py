"""Stop a service whose clients are 20 ms away, in a network of their own, and print what became of their requests.

Run as root, on Linux: PYTHONPATH=tests .venv/bin/python tests/reliability/far_clients.py STOPS. Each client opens a
connection for each request. A process between both networks holds each packet for 10 ms.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections import Counter, deque
from contextlib import closing, suppress

from conftest import MODELS
from support.http import COMMAND, PATIENCE, post_bytes

ONE_WAY_SECONDS = 0.01
CLIENTS = 64
SERVICE, NEAR = "10.9.0.1", "10.9.0.2"
CLONE_NEWNET, TUNSETIFF, IFF_TUN_NO_PI = 0x40000000, 0x400454CA, 0x1001
REQUEST = post_bytes(b'{"inputs": "a fast car"}').replace(b"host: test", b"host: test\r\nconnection: close")
libc = ctypes.CDLL(None, use_errno=True)


def enter_new_network(address: str) -> int:
    """Move this process into a network of its own; returns the other end of its only device."""
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"far", IFF_TUN_NO_PI))
    for words in ("link set lo up", f"addr add {address}/30 dev far", "link set far up"):
        subprocess.run(["ip", *words.split()], check=True)
    return device


def carry(one: int, other: int) -> None:
    """Carry packets between two networks, each after a while."""
    under_way: deque[tuple[float, int, bytes]] = deque()
    while True:
        wait = under_way[0][0] - time.monotonic() if under_way else 1.0
        for device in select.select([one, other], [], [], max(0.0, wait))[0]:
            with suppress(BlockingIOError):
                while True:
                    packet = os.read(device, 65_536)
                    under_way.append((time.monotonic() + ONE_WAY_SECONDS, other if device == one else one, packet))
        while under_way and under_way[0][0] <= time.monotonic():
            os.write(*under_way.popleft()[1:])


async def ask_until_refused(port: int, counts: Counter[str]) -> None:
    """Ask again and again until nobody listens any more."""
    while True:
        try:
            reader, writer = await asyncio.open_connection(SERVICE, port)
            with closing(writer):
                writer.write(REQUEST)
                answer = await reader.read()
            counts[answer[9:12].decode() or "lost"] += 1
        except ConnectionRefusedError:
            counts["refused"] += 1
            return
        except ConnectionError:
            counts["lost"] += 1


async def load_and_stop(process: subprocess.Popen[str], port: int) -> Counter[str]:
    """Return the number of requests by status, of those that were lost, and of clients that were refused in the end."""
    counts: Counter[str] = Counter()
    clients = [asyncio.create_task(ask_until_refused(port, counts)) for _ in range(CLIENTS)]
    while counts["200"] < 3 * CLIENTS:
        await asyncio.sleep(ONE_WAY_SECONDS)
    process.send_signal(signal.SIGTERM)
    await asyncio.gather(*clients)
    return counts


def stop_once(network: int, workers: str) -> Counter[str]:
    """Start a service in this network, and stop it under load."""
    options = ["--host", "::", "--port", "0", "--model", str(MODELS / "paragram-phrase"), "--workers", workers]
    joined = [
        sys.executable,
        "-c",
        f"import ctypes, os, sys; ctypes.CDLL(None).setns({network}, 0); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    with subprocess.Popen(
        [*joined, *COMMAND, *options], stderr=subprocess.PIPE, text=True, pass_fds=[network]
    ) as process:
        assert process.stderr is not None
        try:
            while not (found := re.search(r"listening on http://.*:(\d+) ", line := process.stderr.readline())):
                assert line
            while "ready on cpu" not in (line := process.stderr.readline()):
                assert line
            counts = asyncio.run(asyncio.wait_for(load_and_stop(process, int(found[1])), PATIENCE))
            counts[f"exit code {process.wait(PATIENCE)}"] += 1
        finally:
            process.kill()
    return counts


if __name__ == "__main__":
    service_end = enter_new_network(SERVICE)
    network = os.open("/proc/self/ns/net", os.O_RDONLY)
    clients_end = enter_new_network(NEAR)
    carrier = os.fork()
    if not carrier:
        carry(service_end, clients_end)
    try:
        total: Counter[str] = Counter()
        for number in range(int(sys.argv[1])):
            total += stop_once(network, str(1 + number % 2))
        print(json.dumps(total))  # noqa: T201
    finally:
        os.kill(carrier, signal.SIGKILL)
