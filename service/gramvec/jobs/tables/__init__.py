"""Tables: text, JSON, CSV and Parquet, plain or compressed, read in batches and written atomically.

A new format to read is a Reader in `readers`, one to write a Writes in `writers`.
"""
