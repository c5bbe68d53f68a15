"""POST /embed of two versions of the service over sockets, in turns: python -m benchmarks.versions OTHER_TREE.

OTHER_TREE is a checkout of another version whose loops in C are built, or its folder `service`; the same Python runs
both. The rates are ratios by the servers' CPU time to the other version with nothing added, three times in turn, so
they hold on a busy machine, too.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from benchmarks.http import CASES, interleaved
from benchmarks.measure import ROOT, Setting, machine
from benchmarks.servers import Command, Server, gramvec_serve
from benchmarks.texts import sentences

CORS = ("--cors-origins", "https://example.org")
ADDED = {"": (), ", CORS on": CORS}


def serving(tree: Path, name: str, model: str, *options: str) -> Command:
    """Return the command of the version that lies in a folder."""
    source = tree / "service" if (tree / "service").is_dir() else tree
    path = os.pathsep.join([str(source), str(ROOT)])
    return replace(gramvec_serve(model, *options), name=name, variables={"PYTHONPATH": path})


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("other", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--model", default="gramvec-en", show_default=True, help="A name in models/, or a bundle's folder.")
@click.option("--texts", type=click.IntRange(min=1), default=4096, show_default=True, help="How many sentences.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Interleaved rounds a turn.")
@click.option("--turns", type=click.IntRange(min=1), default=3, show_default=True, help="How often to measure all.")
def main(other: Path, model: str, texts: int, rounds: int, turns: int) -> None:
    """Measure this version of the service beside another."""
    setting = Setting(model, sentences(Path("data"), texts), rounds, Path("data"))
    print(machine())
    for turn in range(1, turns + 1):
        with ExitStack() as stack:
            servers = [
                stack.enter_context(Server(serving(tree, f"{name}{added}", model, *options)))
                for added, options in ADDED.items()
                for tree, name in ((other, "other"), (ROOT, "this"))
            ]
            for case in CASES:
                timings = interleaved(servers, case, setting)
                base = timings["other"].per_cpu_second
                ratios = ", ".join(f"{name} {timing.per_cpu_second / base:.2f}" for name, timing in timings.items())
                spreads = max(timing.spread for timing in timings.values())
                print(
                    f"turn {turn}: {case.unit}, {case.connections} connections: {ratios}"
                    f" ({base:.0f} a CPU second; spread {spreads:.2f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
