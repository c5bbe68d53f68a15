"""Kinds of things that made tables hold: a family of them a file, but for what is near."""
