"""Paths and shapes of other services over the same models: OpenAI, Cohere, Ollama, TEI, KServe and SageMaker.

Nothing else imports them, so a reader may skip this folder.
"""
