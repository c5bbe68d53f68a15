"""Kinds of things that made tables hold: a family of them a file, but for what is near.

Answers, namesakes and spellings are no families of things with columns: each makes its tables itself.
"""
