"""Texts to features: a vocabulary's rows for each text, in C and in numpy.

A new kind of feature starts in `spec`, then in both featurizers and in `spans`.
"""
