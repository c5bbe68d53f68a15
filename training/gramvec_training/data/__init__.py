"""Corpora, vocabularies, samplers and misspelled copies."""
