"""Measurements: each prints a rate and its ratio to a peer or a limit taken in the same run."""
