"""Models that are served, the indexes and heads beside them, and the memory of all requests."""
