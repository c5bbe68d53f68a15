"""Orders: the same customer's next order, and the same item for another customer, are others."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from random import Random

from gramvec_training.data.made_tables import words, writing
from gramvec_training.data.made_tables.families import parts, people, products
from gramvec_training.data.made_tables.records import Column, Thing, ThingFamily
from gramvec_training.data.made_tables.titles import write_title


def draw_orders(drawn: Random, count: int, kin: float) -> list[Thing]:
    """Return orders; customers and items return."""
    locales = words.draw_locales(drawn)[:3]
    customers = [
        people.draw_person(drawn.choice(locales), drawn, middles=False)
        for _ in range(max(10, int(count * (0.9 - kin))))
    ]
    source = drawn.choice((parts.draw_parts, products.draw_products))
    items = source(drawn, drawn.randint(20, max(21, count // 2)), 0.3)
    form = drawn.choice(("{:07d}", "SO-{:05d}", "A{:06d}", "{:05d}/24", "ORD{:08d}"))
    number = drawn.randint(1000, 60_000)
    start = date(drawn.randint(2012, 2025), drawn.randint(1, 12), 1)
    made: list[Thing] = []
    customer = customers[0]
    while len(made) < count:
        number += drawn.randint(1, 9)
        customer = customer if drawn.random() < kin / 2 else drawn.choice(customers)
        item = drawn.choice(items)
        quantity = drawn.choice((1, 1, 1, 2, 3, 5, 10, 12, 50, 100))
        price = item.get("price") or Decimal(drawn.randint(100, 90_000)) / 100
        made.append(
            {
                "order": form.format(number),
                "customer": customer["person"],
                "item": item.get("text") or item["title"],
                "quantity": (Decimal(quantity), ""),
                "day": start + timedelta(days=drawn.randint(0, 400)),
                "amount": (price * quantity).quantize(Decimal("0.01")),
                "status": drawn.choice(("open", "shipped", "paid", "returned")),
                "town": customer["town"],
                "email": customer["email"],
            }
        )
    return made


def change_order(thing: Thing, drawn: Random, noise: float) -> Thing:
    """Return an order as the warehouse or the books have it: later, in another state, with shipping added."""
    made = dict(thing)
    if drawn.random() < 0.7 * noise:
        made["status"] = drawn.choice(("shipped", "paid", "closed"))
    if drawn.random() < 0.4 * noise:
        made["day"] = thing["day"] + timedelta(days=drawn.randint(1, 5))
    if drawn.random() < 0.15 * noise:
        made["amount"] = thing["amount"] + drawn.choice((Decimal("4.90"), Decimal("5.99"), Decimal("10.00")))
    if drawn.random() < 0.2 * noise:
        made["order"] = None
    return made


_COLUMNS = {
    "order": Column(("order_no", "order", "reference", "po"), writing.write_code, 0.05),
    "customer": Column(("customer", "name", "buyer", "ship_to"), people.write_name, 0.02),
    "item": Column(("item", "article", "product", "description"), write_title, 0.03),
    "quantity": Column(("qty", "quantity", "menge"), writing.write_quantity, 0.03),
    "day": Column(("date", "ordered", "ship_date"), writing.write_date, 0.04),
    "amount": Column(("amount", "total", "sum"), writing.write_amount, 0.04),
    "status": Column(("status", "state"), writing.write_plain, 0.1, weak=True),
    "town": Column(("city", "town"), writing.write_text, 0.08, weak=True),
    "email": Column(("email", "mail"), writing.write_email, 0.15, weak=True),
}
_LAYOUTS = """
order customer item quantity day amount; customer item amount; customer item quantity day; order customer amount;
customer day amount;
customer email item day; order item quantity amount status; customer town item quantity day amount status;
order customer item day
"""
ORDERS = ThingFamily("orders", _COLUMNS, _LAYOUTS, draw_orders, change_order)
