"""Files of any length to vectors, in bounded memory; near-duplicates of a file; adapters for Ray Data and Spark.

docs/bulk.md has examples. Reading and writing Parquet and zstd wants the extra `bulk` (pyarrow).
"""
