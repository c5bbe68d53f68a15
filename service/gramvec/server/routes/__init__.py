"""Handlers of the routes, and the table that lists them."""
