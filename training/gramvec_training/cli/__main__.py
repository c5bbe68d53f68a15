"""`python -m gramvec_training.cli`: the command gramvec-train."""

from gramvec_training.cli.main import main

main()
