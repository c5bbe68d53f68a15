"""Trained weights to bundles."""
