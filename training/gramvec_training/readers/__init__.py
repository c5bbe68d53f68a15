"""Readers of training files: pairs, labels, vectors, frequencies."""
