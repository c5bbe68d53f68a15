"""The HTTP service: `gramvec.http.app.create_app` for ASGI servers, `gramvec.http.server.serve` for a whole process.

Nothing is imported here, so that the command line can show its options without loading FastAPI.
"""
