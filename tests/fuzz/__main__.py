"""`make fuzz`: all parts for a stated time, each in processes of its own; what fails is kept with its input."""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

from fuzz import build

# Of the time: the shares of the parts, and whether they run with sanitizers.
PARTS = {"loops": (5, True), "bundles": (3, False), "graphs": (2, False), "tables": (2, False), "indexes": (2, False),
         "histories": (3, False), "matchers": (1, False), "values": (2, True), "tokenizers": (2, False),
         "runtimes": (2, False)}  # fmt: skip
CRASHES = build.FOLDER / "crashes"
# No round takes a second.
ROUND_SECONDS = 60.0
OVER = 0
BASES = "bases"
FAULT = "GRAMVEC_FUZZ_FAULT"  # the number of a round that is to fail, to see that it is kept


def main() -> int:
    """The command line; exit code 1 if a round has failed."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="for all parts together (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the random numbers; default: another each time")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between (default: %(default)s)")
    parser.add_argument("--round", type=int, default=None, help="this one alone, in this process (of one part)")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(2**32)
    parts = given.only.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    if given.child is not None:
        return run_rounds(parts[0], seed, given.round or 0, given.seconds, given.child)
    with tempfile.TemporaryDirectory(prefix="gramvec-fuzz-") as name:
        return 1 if run_parts(parts, seed, given.seconds, given.round, Path(name)) else 0


def run_parts(parts: list[str], seed: int, seconds: float, one_round: int | None, folder: Path) -> int:
    """How many rounds have failed."""
    failures = 0
    shares = sum(PARTS[part][0] for part in parts)
    for part in parts:
        share, sanitized = PARTS[part]
        environment = dict(os.environ)
        if sanitized:
            try:
                environment |= build.built()
            except build.NoSanitizersError as error:
                say(f"{part}: without sanitizers, because {error}")
        importlib.import_module(f"fuzz.{part}").prepare(folder / BASES)
        failures += run_part(part, seed, seconds * share / shares, one_round, folder, environment)
    return failures


def run_part(
    part: str, seed: int, seconds: float, one_round: int | None, folder: Path, environment: dict[str, str]
) -> int:
    """Start a process, and another where one fails, until the time is over."""
    end = time.monotonic() + seconds
    number, failures, done = one_round or 0, 0, 0
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), str(build.ROOT)])
    while time.monotonic() < end or (one_round is not None and not done + failures):
        left = 0.0 if one_round is not None else max(0.1, end - time.monotonic())
        command = [
            sys.executable, "-m", "fuzz", "--only", part, "--seed", str(seed), "--round", str(number),
            "--seconds", str(left), "--child", str(folder),
        ]  # fmt: skip
        with (folder / "log").open("wb") as log:
            code = subprocess.run(command, env=environment, stderr=log, check=False).returncode
        at = int((folder / "round").read_text() or number)
        done += at - number + (code == OVER)
        if code != OVER:
            failures += 1
            keep(part, seed, at, code, folder)
        number = at + 1
        if one_round is not None:
            break
    say(f"{part}: {done} rounds from seed {seed} in {seconds:.0f} s, {failures} failed")
    return failures


def keep(part: str, seed: int, number: int, code: int, folder: Path) -> None:
    """Keep what a round had made when it failed."""
    kept = CRASHES / f"{part}-{seed}-{number}"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    # `cp`, because it copies pipes and links as they are.
    subprocess.run(["cp", "-a", folder / f"round-{number}", kept / "input"], check=True)
    shutil.copy(folder / "log", kept / "log")
    lines = (kept / "log").read_text(errors="replace").splitlines()
    say(f"{part}: round {number} failed (exit code {code}); its input is in {kept}")
    say(f"  again: PYTHONPATH=tests {Path(sys.executable)} -m fuzz --only {part} --seed {seed} --round {number}")
    for line in lines[-40:]:
        say(f"  | {line}")


def run_rounds(part: str, seed: int, number: int, seconds: float, folder: Path) -> int:
    """In a process of its own: rounds until the time is over, at least one."""
    warnings.simplefilter("error")
    build.install()
    module = importlib.import_module(f"fuzz.{part}")
    end = time.monotonic() + seconds
    with (folder / "round").open("w") as told:
        while True:
            told.seek(0)
            told.write(str(number))
            told.flush()
            # Each round has a folder of its own: a writer whose commit failed may still write to that of the last one.
            now = folder / f"round-{number}"
            now.mkdir()
            faulthandler.dump_traceback_later(ROUND_SECONDS, exit=True)
            try:
                module.one_round(random.Random(f"{part} {seed} {number}"), folder / BASES, now)
                if os.environ.get(FAULT) == str(number):
                    raise AssertionError("a fault, as asked for")
            except BaseException:
                traceback.print_exc()
                return 1
            shutil.rmtree(now, ignore_errors=True)
            if time.monotonic() >= end:
                faulthandler.cancel_dump_traceback_later()
                return OVER
            number += 1


def say(line: str) -> None:
    """To stdout, at once."""
    with suppress(BrokenPipeError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
