"""Duplicates of a table by Spark, on as many machines as it has.

`pip install 'gramvec[cpu,match]' 'pyspark>=4.1' pyarrow`, and Java. It finds the pairs of examples/duckdb_pairs.py,
whatever the partitions are.
"""

import os
import sys

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf, col, count, explode

from gramvec.jobs.pairs.arrow import blocking_keys, pair_scores

NAMES = [
    "Canon PowerShot SD1100 IS", "Nikon Coolpix S8100", "Cannon Powershot SD1100-IS", "garden hose, green",
    "NIKON COOLPIX S 8100", "Sony Bravia 40 LCD", "Nikon Coolpix S9100", "SONY Bravia LCD 40",
]  # fmt: skip
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()


@arrow_udf("array<bigint>")
def keys_of(names: pa.Array) -> pa.Array:
    """Return keys that texts have in common if they are alike."""
    return blocking_keys(names)


@arrow_udf("float")
def score_of(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the probability that both are the same thing."""
    return pair_scores(left, right)


names = spark.createDataFrame(list(enumerate(NAMES)), "id bigint, name string")
keys = names.select("id", explode(keys_of("name")).alias("key"))
# A key that many rows have is one of common words: texts that are alike have other keys in common.
keys = keys.join(keys.groupBy("key").agg(count("*").alias("rows")).where("rows <= 20"), "key")
same = (col("a.key") == col("b.key")) & (col("a.id") < col("b.id"))
pairs = (
    keys.alias("a").join(keys.alias("b"), same).select(col("a.id").alias("one"), col("b.id").alias("other")).distinct()
)
sides = [
    names.select(col("id").alias(key), col("name").alias(side)) for key, side in (("one", "left"), ("other", "right"))
]
scored = pairs.join(sides[0], "one").join(sides[1], "other").withColumn("score", score_of("left", "right"))
for row in scored.where("score >= 0.5").orderBy("one", "other").collect():
    print(f"{row.left} = {row.right}")
spark.stop()

# Prints:
# Canon PowerShot SD1100 IS = Cannon Powershot SD1100-IS
# Nikon Coolpix S8100 = NIKON COOLPIX S 8100
# Sony Bravia 40 LCD = SONY Bravia LCD 40
