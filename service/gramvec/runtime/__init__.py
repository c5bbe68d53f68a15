"""Runtimes: features to vectors on one device; golden texts choose which runtime serves.

A new device is a module here and a line in `select`.
"""
