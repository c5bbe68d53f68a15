"""What is known against the pinned packages: pip-audit's answer, or one sentence if there was none (make audit)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PINS = Path(__file__).with_name("constraints.txt")
OPTIONS = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
NO_ANSWER = (
    "nothing was audited: pip-audit reached no database of vulnerabilities; run make audit where there is a network"
)


def main() -> str | None:
    """Ask, and say what came of it; a sentence if there is something to do."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(PINS), *OPTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return f"{NO_ANSWER} ({(done.stderr.strip().splitlines() or ['it said nothing'])[-1]})"
    # A database that cannot be asked about a package makes pip-audit skip it, and end as if all were well.
    audited = [one for one in packages if "skip_reason" not in one]
    if not audited:
        return NO_ANSWER
    found = [f"{one['name']} {one['version']}: {known['id']}" for one in audited for known in one["vulns"]]
    sys.stdout.write(f"{len(audited)} of {len(packages)} pinned packages audited, {len(found)} vulnerabilities known\n")
    return "\n".join([*found, "raise these in pyproject.toml, then run make lock"]) if found else None


if __name__ == "__main__":
    sys.exit(main())
