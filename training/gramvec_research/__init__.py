"""Experiments of the papers, on top of gramvec_training; not part of the wheel."""
