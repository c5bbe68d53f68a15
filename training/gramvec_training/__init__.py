"""The training side of gramvec: data, vocabularies, encoders, losses, export and evaluation."""
