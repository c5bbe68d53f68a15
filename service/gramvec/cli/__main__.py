"""`python -m gramvec.cli`, as `gramvec`."""

from __future__ import annotations

from gramvec.cli import main

if __name__ == "__main__":
    main()
