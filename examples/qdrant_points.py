"""Qdrant, in this process or on a server.

`pip install qdrant-client`. `:memory:` needs no server; a path keeps the vectors on disk, `url=` asks a server.
"""

from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

import gramvec

embedder = gramvec.load("gramvec-en")
texts = ["cheap flights", "ripe bananas", "low-cost air fares", "a yellow fruit"]

client = QdrantClient(":memory:")
client.create_collection("texts", VectorParams(size=embedder.dimension, distance=Distance.COSINE))
points = [
    PointStruct(id=number, vector=vector.tolist(), payload={"text": text})
    for number, (text, vector) in enumerate(zip(texts, embedder.embed(texts), strict=True))
]
client.upsert("texts", points)
for query, vector in zip(["chep flihgts", "bananna"], embedder.embed(["chep flihgts", "bananna"]), strict=True):
    (found,) = client.query_points("texts", vector, limit=1).points
    print(query, "->", found.payload["text"], round(found.score, 2))

# Prints:
# chep flihgts -> cheap flights 0.62
# bananna -> ripe bananas 0.75
