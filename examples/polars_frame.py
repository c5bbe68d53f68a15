"""Expressions over texts in polars.

`pip install polars`. `register_polars` gives expressions and columns the namespace `gramvec`.

A missing text has a missing answer. A batch that polars hands over is embedded in one call.
"""

import polars as pl

from gramvec.integrations import register_polars

register_polars()
frame = pl.DataFrame({"title": ["cheap flights", "ripe bananas", None, "low-cost air fares"]})
found = (
    frame.lazy()
    .with_columns(
        score=pl.col("title").gramvec.similarity("chep flihgts"),
        vector=pl.col("title").gramvec.embed("gramvec-en", dimensions=100),
    )
    .sort("score", descending=True, nulls_last=True)
    .collect()
)
for title, score in found.select("title", "score").rows():
    print(title, score and round(score, 2))
print(found.schema["vector"])

# Prints:
# cheap flights 0.62
# low-cost air fares 0.4
# ripe bananas 0.1
# None None
# Array(Float32, shape=(100,))
