"""Losses, and the examples that each draws."""
