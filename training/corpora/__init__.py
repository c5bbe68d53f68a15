"""Recipes of the training data: where the authors' files are, and how ours are made of them."""
