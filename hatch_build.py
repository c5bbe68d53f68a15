"""Builds gramvec.native.loops, the extension in C: into the wheel, or into the source tree for an editable install.

Without a C compiler the install goes on without it: the service is complete, but several times slower.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

FOLDER = Path("service/gramvec/native")
# No fused multiply-add: a sum has the same bytes whatever the compiler and the processor are.
FLAGS = ["-O3", "-std=c11", "-D_GNU_SOURCE", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-g0"]


class NativeLoops(BuildHookInterface[Any]):
    """Runs before hatchling packs a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tell hatchling of the result."""
        if self.target_name != "wheel":
            return
        built = _compile(Path(self.root))
        if not built.exists():
            self.app.display_warning("gramvec: the loops in C could not be built; numpy does their work, more slowly")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(built.relative_to(self.root).as_posix())


def _compile(root: Path) -> Path:
    folder = root / FOLDER
    extension = Extension(
        "gramvec.native.loops",
        [str(folder / "module.c")],
        depends=[str(folder / name) for name in ("featurise.h", "sum.h")],
        # The paths of the machine that builds are not for the wheel: the same sources give the same bytes.
        extra_compile_args=[*FLAGS, f"-ffile-prefix-map={root}=."],
        optional=True,  # a failure is a warning
        extra_link_args=["-Wl,--build-id=none"] if sys.platform == "linux" else [],
    )
    command = build_ext(Distribution({"ext_modules": [extension]}))
    command.build_lib = str(root / "service")
    command.build_temp = str(root / "build" / f"native-{platform.machine()}-{sys.implementation.cache_tag}")
    command.force = os.environ.get("GRAMVEC_REBUILD") == "1"
    command.finalize_options()
    command.run()
    return Path(command.get_ext_fullpath("gramvec.native.loops"))
