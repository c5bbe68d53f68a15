"""The loops in C with AddressSanitizer and UndefinedBehaviorSanitizer, in a folder of their own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "service" / "gramvec" / "native"
FOLDER = ROOT / "build" / "fuzz"
LOOPS = "GRAMVEC_FUZZ_LOOPS"  # the path of the built module, for the processes that are to use it

FLAGS = [
    "-O1", "-g", "-std=c11", "-D_GNU_SOURCE", "-ffp-contract=off", "-fPIC", "-shared", "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
]  # fmt: skip


class NoSanitizersError(Exception):
    """Why the loops cannot be built with sanitizers here."""


def built() -> dict[str, str]:
    """What the environment of a process has to hold for it to use the loops with sanitizers; they are built if need be.

    Raises NoSanitizersError where there is no compiler, or none that has them.
    """
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise NoSanitizersError("there is no C compiler (Debian: apt install gcc)")
    module = FOLDER / f"loops{sysconfig.get_config_var('EXT_SUFFIX')}"
    newest = max(source.stat().st_mtime for source in SOURCES.glob("*.[ch]"))
    if not module.exists() or module.stat().st_mtime < newest:
        FOLDER.mkdir(parents=True, exist_ok=True)
        include = sysconfig.get_path("include")
        partial = module.with_suffix(f".{os.getpid()}")
        command = [compiler, *FLAGS, f"-I{include}", str(SOURCES / "module.c"), "-o", str(partial)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoSanitizersError(f"the loops cannot be built with sanitizers: {done.stderr.splitlines()[-1:]}")
        partial.replace(module)
    preloaded = [_library(compiler, name) for name in ("asan", "ubsan")]
    return {
        LOOPS: str(module),
        "LD_PRELOAD": ":".join(one for one in preloaded if one),
        # Python never frees all; an allocation that is too large fails, as it does without.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=1:handle_segv=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that what lies behind a bytearray's last byte is watched
    }


def _library(compiler: str, name: str) -> str:
    for library in (f"lib{name}.so", f"libclang_rt.{name}.so", f"libclang_rt.{name}-x86_64.so"):
        found = subprocess.run(
            [compiler, f"-print-file-name={library}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        if Path(found).is_absolute() and Path(found).exists():
            return found
    if name == "asan":
        raise NoSanitizersError("the compiler has no runtime library of AddressSanitizer")
    return ""


def install() -> None:
    """In a process whose environment names them: put these loops in the place of those that were installed."""
    if (path := os.environ.get(LOOPS)) is None:
        return
    assert "gramvec.native" not in sys.modules, "too late: gramvec has its loops"
    name = "gramvec.native.loops"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    import gramvec.native

    gramvec.native.loops = module
