"""Batches of texts for a model, and queues of other work."""
