"""Features: the rows of a table that a text has, in C and in numpy.

A new kind of feature starts in `spec`, then in both featurizers and in `spans`.
"""
