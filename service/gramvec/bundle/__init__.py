"""Bundles: folders of untrusted files, opened and validated before anything reads them.

A new file of the format starts as a check here; a new operator of a graph is a name in `graph_check`.
"""
