"""Databases, data frames and files of vectors over a gramvec model, one module for each library."""
