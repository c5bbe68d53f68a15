"""Former place of an adapter."""

raise ImportError("gramvec.bulk.ray is now gramvec.bulk.transform, with Embed and embed_parquet")
