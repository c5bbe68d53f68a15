"""`python -m gramvec_research`."""

from gramvec_research.cli.papers import main

main(prog_name="python -m gramvec_research")
