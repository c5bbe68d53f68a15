"""Vectors in one SQLite file.

`pip install sqlite-vec apsw`. apsw, because not every Python's own sqlite3 can load an extension.
"""

import apsw
import sqlite_vec

import gramvec

embedder = gramvec.load("gramvec-en")
texts = ["cheap flights", "ripe bananas", "low-cost air fares", "a yellow fruit"]

connection = apsw.Connection(":memory:")  # or a file
connection.enable_load_extension(True)
connection.load_extension(sqlite_vec.loadable_path())
connection.execute("create table texts (id integer primary key, text text)")
connection.execute("create virtual table vectors using vec0 (vector float[300] distance_metric=cosine)")
for number, (text, vector) in enumerate(zip(texts, embedder.embed(texts), strict=True), 1):
    connection.execute("insert into texts values (?, ?)", (number, text))
    connection.execute("insert into vectors (rowid, vector) values (?, ?)", (number, vector.tobytes()))

query = embedder.embed(["chep flihgts"])[0].tobytes()
ask = "select text, distance from vectors join texts on id = vectors.rowid where vector match ? and k = 2 order by 2"
for text, distance in connection.execute(ask, (query,)):
    print(text, round(1 - distance, 2))

# Prints:
# cheap flights 0.62
# low-cost air fares 0.4
