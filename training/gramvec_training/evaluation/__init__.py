"""What a model is good for, in figures: labelled sets of several families in, scores out.

Every family scores a Comparison (see comparison.py), so that a bundle, a sparse vector and a rival's string distance
stand in one table. A new family is a module here: a reader, a frozen set, a function that scores one model on it.
"""
