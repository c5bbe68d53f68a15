"""Duplicates of a table by SQL in DuckDB, for tables that outgrow `gramvec dedupe`.

`pip install 'gramvec[cpu,match]' duckdb pyarrow`. Two functions are all it takes: keys that texts have in common if
they are alike, and the probability that two texts are the same thing. What they return for a row depends on that row
only.
"""

import duckdb

from gramvec.jobs.pairs.arrow import blocking_keys, pair_scores

NAMES = [
    "Canon PowerShot SD1100 IS", "Nikon Coolpix S8100", "Cannon Powershot SD1100-IS", "garden hose, green",
    "NIKON COOLPIX S 8100", "Sony Bravia 40 LCD", "Nikon Coolpix S9100", "SONY Bravia LCD 40",
]  # fmt: skip

connection = duckdb.connect()
connection.execute("set enable_progress_bar = false")
connection.create_function("keys_of", blocking_keys, ["VARCHAR"], "BIGINT[]", type="arrow")
connection.create_function("score_of", pair_scores, ["VARCHAR", "VARCHAR"], "FLOAT", type="arrow")
connection.execute("create table names (id bigint, name text)")
connection.executemany("insert into names values (?, ?)", list(enumerate(NAMES)))
# A key that many rows have is one of common words: texts that are alike have other keys in common.
connection.execute("create table keys as select id, unnest(keys_of(name)) as key from names")
connection.execute("delete from keys where key in (select key from keys group by key having count(*) > 20)")
ask = """
    with pairs as (select distinct a.id as one, b.id as other from keys a join keys b on a.key = b.key and a.id < b.id)
    select l.name, r.name from pairs join names l on l.id = one join names r on r.id = other
    where score_of(l.name, r.name) >= 0.5 order by one, other
"""
for left, right in connection.execute(ask).fetchall():
    print(f"{left} = {right}")

# Prints:
# Canon PowerShot SD1100 IS = Cannon Powershot SD1100-IS
# Nikon Coolpix S8100 = NIKON COOLPIX S 8100
# Sony Bravia 40 LCD = SONY Bravia LCD 40
