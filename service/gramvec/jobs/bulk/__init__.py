"""Bulk jobs: files of any length to files of vectors, in bounded memory and on all cores. docs/bulk.md has examples."""
