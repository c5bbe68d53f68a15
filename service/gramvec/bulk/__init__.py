"""Bulk jobs: files of any length to files of vectors, in bounded memory and on all cores.

A new adapter (Ray Data, Spark) is a module here. docs/bulk.md has examples.
"""
