"""Small tables of customers for properties: some rows are one person, written in two ways."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Rows = list[dict[str, str]]
NAMES = [
    "Anna Schmidt", "Anne Schmitt", "Jose Garcia", "José García Jr.", "O'Neil, Pat", "Wei Zhang", "Li Wei",
    "Maria Silva",
]  # fmt: skip
STREETS = ["14 Main St", "14A Main Street", "Hauptstr. 7", "221b Baker Street", ""]
TOWNS = ["Berlin", "Paris", "Springfield", ""]
PHONES = ["030 1234567", "+49 30 1234567", "555-0142", "(312) 555-0199", "n/a"]
COLUMNS = ["name", "street", "town", "phone"]


def _lose_a_letter(text: str) -> str:
    return text[:3] + text[4:]


WAYS = [str, str.upper, _lose_a_letter, lambda text: text.replace(" ", ", "), lambda text: ""]
cells = [
    st.builds(lambda text, way: way(text), st.sampled_from(texts), st.sampled_from(WAYS))
    for texts in (NAMES, STREETS, TOWNS, PHONES)
]
rows: st.SearchStrategy[dict[str, str]] = st.tuples(*cells).map(lambda row: dict(zip(COLUMNS, row, strict=True)))
tables: st.SearchStrategy[Rows] = st.lists(rows, min_size=1, max_size=12)


def scores_of(found: Any) -> dict[tuple[int, int], float]:
    """Return the score of each pair of rows."""
    return {(a, b): score for a, b, score in zip(*(side.tolist() for side in found), strict=True)}
