"""The command line of gramvec_research."""
