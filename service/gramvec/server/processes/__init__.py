"""The serving processes: listening sockets, a server with graceful shutdown, and uvicorn's supervisor over several."""
