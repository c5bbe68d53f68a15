"""`python -m gramvec.cli`, as `gramvec`."""

from gramvec.cli import main

main()
