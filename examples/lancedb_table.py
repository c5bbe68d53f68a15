"""LanceDB, which embeds by itself.

`pip install lancedb`. A table keeps the function `gramvec` and its model's name; whoever opens it imports
`LanceEmbeddingFunction` first.
"""

import lancedb
from lancedb.pydantic import LanceModel, Vector

from gramvec.integrations import LanceEmbeddingFunction

function = LanceEmbeddingFunction.create(model="gramvec-en")


class Product(LanceModel):
    name: str = function.SourceField()
    vector: Vector(function.ndims()) = function.VectorField()
    price: int


table = lancedb.connect("products.lance").create_table("products", schema=Product)
names = ["cheap flights", "ripe bananas", "low-cost air fares", "a yellow fruit"]
table.add([{"name": name, "price": price} for name, price in zip(names, [9, 1, 7, 2], strict=True)])
for row in table.search("chep flihgts").distance_type("cosine").where("price > 5").limit(2).to_list():
    print(row["name"], round(1 - row["_distance"], 2))

# Prints:
# cheap flights 0.62
# low-cost air fares 0.4
