"""HTTP/1.1 (RFC 9112) over httptools, as a uvicorn server runs it: requests of clients become ASGI, answers bytes.

Why it exists: a short request takes two thirds of the CPU time that it takes over uvicorn's own protocol
(`make bench PARTS=protocol`), and whatever a hostile client may send, hold or delay has a limit: heads, trailers, chunk
extensions, requests sent ahead, answers that are not read.
"""
