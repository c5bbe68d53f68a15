"""The edge: connections with limits, a server with graceful shutdown, uvicorn's supervisor over several (README.md)."""
