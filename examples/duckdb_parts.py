"""Matches of two tables that are larger than memory: DuckDB holds them, and gramvec matches part by part.

`pip install 'gramvec[cpu,match]' duckdb pyarrow`. A part is some left rows with the right rows that share a key with
them, so memory is that of a part. How rare a word or a value is, is counted in each part: scores differ a little from
those of `gramvec match` over both tables at once, which the last lines print.
"""

import random

import duckdb
import pyarrow as pa

import gramvec
from gramvec.jobs.pairs.arrow import blocking_keys

ROWS, PART = 2_000, 500
COLUMNS = ["name", "street", "born"]


def people(count: int, drawn: random.Random) -> list[list[str]]:
    """Return made people: a name, a street and a birthday."""
    ends = ["a", "er", "ing", "son", "ov", "ez"]
    words = ["".join(drawn.choice("bdfgklmnprstvz") + drawn.choice("aeiou") for _ in "12") + drawn.choice(ends)
             for _ in range(800)]  # fmt: skip
    return [
        [f"{drawn.choice(words)} {drawn.choice(words)}", f"{drawn.randint(1, 99)} {drawn.choice(words)} road",
         f"{drawn.randint(1940, 2005)}-{drawn.randint(1, 12):02}-{drawn.randint(1, 28):02}"]
        for _ in range(count)
    ]  # fmt: skip


drawn = random.Random(0)
both = people(ROWS * 3 // 2, drawn)
ours = [[number, *row] for number, row in enumerate(both[:ROWS])]
# Half of them are in both tables, the second time without a letter.
theirs = [[number, name[:3] + name[4:], *rest] for number, (name, *rest) in enumerate(both) if number >= ROWS // 2]


def table_of(rows: list[list[str]]) -> pa.Table:
    """Return rows as a table of Arrow."""
    return pa.table(dict(zip(["id", *COLUMNS], map(list, zip(*rows, strict=True)), strict=True)))


connection = duckdb.connect()  # give it a file's name for tables that are larger than memory
connection.execute("set enable_progress_bar = false")
connection.create_function("keys_of", blocking_keys, ["VARCHAR"], "BIGINT[]", type="arrow")
connection.from_arrow(table_of(ours)).create("ours")
connection.from_arrow(table_of(theirs)).create("theirs")
connection.execute("""
    create table keys_ours as select id, unnest(keys_of(name) || keys_of(street)) as key from ours;
    create table keys_theirs as select id, unnest(keys_of(name) || keys_of(street)) as key from theirs;
    -- Keys that many rows have are those of common words.
    delete from keys_theirs where key in (select key from keys_theirs group by key having count(*) > 50);
    create table found (left_id bigint, right_id bigint, score float);
""")
for start in range(0, ROWS, PART):
    ends = [start, start + PART]
    part = connection.sql("select * from ours where id >= ? and id < ? order by id", params=ends).to_arrow_table()
    ask = """
        select distinct r.* from theirs r join keys_theirs t on t.id = r.id join keys_ours o on o.key = t.key
        where o.id >= ? and o.id < ? order by r.id
    """
    others = connection.sql(ask, params=ends).to_arrow_table()
    matches = gramvec.match(part, others, on=COLUMNS)
    sides = [part["id"].take(pa.array(matches.left)), others["id"].take(pa.array(matches.right))]
    connection.from_arrow(pa.table([*sides, matches.scores], ["left_id", "right_id", "score"])).insert_into("found")

once = gramvec.match(table_of(ours), table_of(theirs), on=COLUMNS)
right = sum(ours[a][0] == theirs[b][0] for a, b in zip(once.left.tolist(), once.right.tolist(), strict=True))
count, equal = connection.execute("select count(*), count(*) filter (left_id = right_id) from found").fetchone()
print(f"part by part: {equal} of {ROWS // 2} right, {count} pairs")
print(f"at once: {right} of {ROWS // 2} right, {len(once.left)} pairs")

# Prints:
# part by part: 1000 of 1000 right, 1000 pairs
# at once: 1000 of 1000 right, 1001 pairs
