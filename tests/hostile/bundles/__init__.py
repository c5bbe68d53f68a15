"""Bundles that somebody made to harm whoever opens them, each with the sentence that it ends in.

Every one has digests that are right. `craft` takes a sound bundle apart and puts it together again, unchecked; the
other modules are the attacks, by what they go for. A new one is a function with the decorator `attack`.
"""
