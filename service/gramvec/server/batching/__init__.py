"""Batching: concurrent requests to batches of the model, with bounded queues and deadlines.

A new reason to refuse a request is a function in `overload`. Nothing here knows HTTP.
"""
