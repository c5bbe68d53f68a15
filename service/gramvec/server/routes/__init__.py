"""Routes for texts, for operators and for people."""
