"""Requests over HTTP into answers: `app.create_app` for ASGI servers, `server.serve` for a whole process.

Nothing is imported here, so that the command line can show its options without loading FastAPI.
"""
