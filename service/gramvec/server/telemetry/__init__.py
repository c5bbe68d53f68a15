"""Metrics, logging and tracing."""
