"""Duplicates of a table by Ray Data, on as many machines as it has.

`pip install 'gramvec[cpu,match,ray]'`. It finds the pairs of examples/duckdb_pairs.py, whatever the blocks are.
"""

from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc
import ray

from gramvec.jobs.pairs.arrow import blocking_keys, pair_scores

NAMES = [
    "Canon PowerShot SD1100 IS", "Nikon Coolpix S8100", "Cannon Powershot SD1100-IS", "garden hose, green",
    "NIKON COOLPIX S 8100", "Sony Bravia 40 LCD", "Nikon Coolpix S9100", "SONY Bravia LCD 40",
]  # fmt: skip


def with_keys(rows: pa.Table) -> pa.Table:
    """Return each row once for each of its keys."""
    keys = blocking_keys(rows["name"])
    return rows.take(pc.list_parent_indices(keys)).append_column("key", keys.flatten())


def as_pairs(rows: pa.Table) -> pa.Table:
    """Return the pairs of the rows of a key; a key that many rows have is one of common words."""
    rows = rows.sort_by("id")
    found = list(combinations(range(len(rows)), 2)) if len(rows) <= 20 else []
    left, right = (rows.take(pa.array([pair[side] for pair in found], pa.int64())) for side in (0, 1))
    return pa.table({"one": left["id"], "other": right["id"], "left": left["name"], "right": right["name"]})


def with_scores(pairs: pa.Table) -> pa.Table:
    """Add the probability that both are the same thing."""
    return pairs.append_column("score", pair_scores(pairs["left"], pairs["right"]))


ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, logging_level="error")
ray.data.DataContext.get_current().enable_progress_bars = False
names = ray.data.from_arrow(pa.table({"id": range(len(NAMES)), "name": NAMES}))
pairs = names.map_batches(with_keys, batch_format="pyarrow").groupby("key").map_groups(as_pairs, batch_format="pyarrow")
scored = pairs.map_batches(with_scores, batch_format="pyarrow").to_pandas().drop_duplicates(["one", "other"])
for row in scored[scored["score"] >= 0.5].sort_values(["one", "other"]).itertuples():
    print(f"{row.left} = {row.right}")

# Prints:
# Canon PowerShot SD1100 IS = Cannon Powershot SD1100-IS
# Nikon Coolpix S8100 = NIKON COOLPIX S 8100
# Sony Bravia 40 LCD = SONY Bravia LCD 40
