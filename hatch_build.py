"""What a wheel has beside the Python sources: the extension in C, gramvec.native.loops, and the default model.

An editable install has the extension built into the source tree, and uses the checkout's models.
Without a C compiler the install goes on without it: the service is complete, but several times slower.

meson-python and scikit-build-core are not taken. Both stop where there is no compiler; here the same hook makes a pure
wheel then. They would bring ninja, and meson or CMake, into each build from the sources, where setuptools calls the
compiler, and a description of the build beside the part of this hook that takes the model in. Whether their wheel has
the same bytes was not measured.
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
SOURCES = ("module.c", "embed.h", "featurize.h", "fold_type.h", "four_bits.h", "jaro.h", "lexical.h",
           "lexical_type.h", "pair_figures.h", "rows.h", "search_calls.h", "signs.h", "sum.h",
           "sum_neon.h")  # fmt: skip
# In the wheel, so that `gramvec serve` works from any folder. The other models would take it over 100 MB.
MODEL = "gramvec-en"
# No fused multiply-add: a sum has the same bytes whatever the compiler and the processor are.
FLAGS = ["-O3", "-std=c11", "-D_GNU_SOURCE", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-g0"]


class ModelAndLoops(BuildHookInterface[Any]):
    """Runs before hatchling packs a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tell hatchling what to take in; `version` is "standard" or "editable"."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        if version == "standard":
            self._take_model(root / "models" / MODEL, build_data)
        built = _compile(root)
        if not built.exists():
            self.app.display_warning("gramvec: the loops in C could not be built; numpy does their work, more slowly")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(built.relative_to(self.root).as_posix())

    def _take_model(self, folder: Path, build_data: dict[str, Any]) -> None:
        if (folder / "manifest.json").is_file():
            build_data["force_include"][str(folder)] = f"gramvec/models/{MODEL}"
        else:
            self.app.display_warning(f"gramvec: models/{MODEL} is not here, so the wheel has no model in it")


def _compile(root: Path) -> Path:
    folder = root / FOLDER
    extension = Extension(
        "gramvec.native.loops",
        [str(folder / SOURCES[0])],
        depends=[str(folder / name) for name in SOURCES[1:]],
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
    built = Path(command.get_ext_fullpath("gramvec.native.loops"))
    newest = max((folder / name).stat().st_mtime for name in SOURCES)
    if built.exists() and built.stat().st_mtime < newest:
        built.unlink()  # of older sources: these could not be compiled
    return built
