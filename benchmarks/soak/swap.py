"""Model whose folder changes under the service."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measure import ROOT
from benchmarks.soak.client import PATIENCE, beside
from benchmarks.soak.requests import Request, dumps
from gramvec import Embedder, load

NAME = "swapped"
KEY = "the-soaks-key"
SOURCES = ("charagram-phrase", "sif")
PROBE = Request("probe", "/embed", dumps({"inputs": "probe"})).wire(KEY)
RELOAD = Request("reload", "/admin/reload", b"").wire(KEY)


class Swap:
    """Two bundles of one name with different weights, and a link to one of them.

    `path` is the link to serve; `models` are both, opened in this process, by x-model.
    """

    def __init__(self, folder: Path) -> None:
        self._folders = [_renamed(ROOT / "models" / name, folder / name) for name in SOURCES]
        opened = [load(one, device="cpu", threads=1) for one in self._folders]
        self._labels = [f"{one.name}@{one.digest[:12]}" for one in opened]
        self.models: Mapping[str, Embedder] = dict(zip(self._labels, opened, strict=True))
        self.path = folder / NAME
        self.path.symlink_to(self._folders[0])
        self.done = 0

    async def once(self, port: int, process: int) -> None:
        """Point the link to the other bundle and have it served, by SIGHUP or by a request, in turn.

        Raises TimeoutError if it is not served in time, RuntimeError if the request for it is refused.
        """
        self.done += 1
        self.point_to(self.done % 2)
        if self.done % 4 < 2:
            os.kill(process, signal.SIGHUP)
        else:
            await self._ask_for_reload(port)
        async with asyncio.timeout(PATIENCE):
            while not await self._serves(port, self._labels[self.done % 2]):
                await asyncio.sleep(0.02)

    async def _ask_for_reload(self, port: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while (answer := await beside(port, RELOAD)) is not None and answer.status == 409:
                # One process serves the new model already, and another does not yet.
                await asyncio.sleep(float(answer.headers["retry-after"]))
        if answer is None or answer.status != 200:
            raise RuntimeError(f"the reload was refused: {answer}")

    def point_to(self, which: int) -> None:
        """Change the link in one step."""
        new = self.path.with_name("new")
        new.symlink_to(self._folders[which])
        new.replace(self.path)

    async def repeatedly(self, port: int, process: int, pause: float) -> None:
        """Swap until cancelled, with `pause` seconds between."""
        while True:
            await asyncio.sleep(pause)
            await self.once(port, process)

    async def _serves(self, port: int, label: str) -> bool:
        answer = await beside(port, PROBE)
        return answer is not None and answer.headers.get("x-model") == label

    def close(self) -> None:
        """Close both models."""
        for model in self.models.values():
            model.close()


def _renamed(source: Path, target: Path) -> Path:
    """Copy a bundle under another name, with links to its files."""
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).symlink_to(file)
    manifest = json.loads((source / "manifest.json").read_bytes())
    (target / "manifest.json").unlink()
    (target / "manifest.json").write_text(json.dumps({**manifest, "name": NAME}))
    return target
