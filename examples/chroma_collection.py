"""Chroma, which embeds by itself.

`pip install chromadb`. A collection keeps the embedding function by the model's name; whoever opens it imports
`ChromaEmbeddingFunction` first.

The collection's distance is 1 - cosine, if nothing else is asked for.
"""

import chromadb

from gramvec.integrations import ChromaEmbeddingFunction

client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))  # or PersistentClient("folder")
collection = client.create_collection("texts", embedding_function=ChromaEmbeddingFunction("gramvec-en"))
collection.add(
    ids=["1", "2", "3", "4"],
    documents=["cheap flights", "ripe bananas", "low-cost air fares", "a yellow fruit"],
    metadatas=[{"price": 9}, {"price": 1}, {"price": 7}, {"price": 2}],
)
found = collection.query(query_texts=["chep flihgts"], n_results=2, where={"price": {"$gt": 5}})
for document, distance in zip(found["documents"][0], found["distances"][0], strict=True):
    print(document, round(1 - distance, 2))

# Prints:
# cheap flights 0.62
# low-cost air fares 0.4
