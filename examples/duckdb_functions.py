"""Functions of SQL in DuckDB.

`pip install duckdb pyarrow`. `register_duckdb` gives one connection two functions, `gramvec_embed(text)` and
`gramvec_similarity(text, text)`.

Vectors have length 1, so the inner product is the cosine. Stored vectors are compared without the model; the query
alone is embedded.
"""

import duckdb

from gramvec.integrations import register_duckdb

connection = duckdb.connect()
connection.execute("set enable_progress_bar = false")
register_duckdb(connection, "gramvec-en")
connection.execute("create table products (name text, price int)")
connection.execute("insert into products values ('cheap flights', 9), ('ripe bananas', 1), ('low-cost air fares', 7)")
connection.execute("create table stored as select *, gramvec_embed(name) as vector from products")

ask = """
    select name, array_inner_product(vector, gramvec_embed('chep flihgts')) as score
    from stored where price > 5 order by score desc
"""
for name, score in connection.execute(ask).fetchall():
    print(name, round(score, 2))
print(connection.execute("select typeof(vector) from stored limit 1").fetchone()[0])

# Prints:
# cheap flights 0.62
# low-cost air fares 0.4
# FLOAT[300]
