"""Random inputs, made from sound ones, for what a stranger sends: `make fuzz`, and a minute of it in the tests.

A part is a module with `prepare(bases)`, which makes in that folder what its rounds start from, and with
`one_round(numbers, bases, folder)`, which makes one input in `folder` with a random.Random, uses it, and raises if
anything happens that must not. Each part runs in processes of its own, which may crash; `__main__` keeps the input of a
round that failed. To add one, name it in PARTS there.
"""
