"""Former place of an adapter."""

raise ImportError("gramvec.bulk.spark is now gramvec.bulk.transform, with SparkEmbed")
