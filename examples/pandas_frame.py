"""Near titles in a pandas frame.

`pip install pandas`. A column goes in as it is; a missing text is refused with its row, so leave it out first.

`frame.to_parquet` keeps such a column of vectors. `gramvec embed` works on files that are larger than memory.
"""

import pandas as pd

import gramvec

frame = pd.DataFrame({"title": ["cheap flights", "ripe bananas", None, "low-cost air fares"], "price": [9, 1, 0, 7]})
frame = frame.dropna(subset="title")

embedder = gramvec.load("gramvec-en")
vectors = embedder.embed(frame["title"])
frame["score"] = embedder.similarity(["chep flihgts"], vectors)[0]
print(frame.sort_values("score", ascending=False).round(2).to_string(index=False))
frame["vector"] = list(vectors)
print(frame["vector"].iloc[0].shape)

# Prints:
#              title  price  score
#      cheap flights      9   0.62
# low-cost air fares      7   0.40
#       ripe bananas      1   0.10
# (300,)
