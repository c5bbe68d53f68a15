"""Pairs of rows: how probable it is that two rows are the same thing, by a model that was learned once.

From texts to a probability:

    rows = read_rows([left_columns, right_columns])  # or [columns] for one table; texts from fold_text
    pairs = left, right, cosines  # candidate pairs of row numbers, from gramvec.jobs.matching.candidates
    score_pairs_of_tables(rows, pairs, pair_model(same=False), same=False).scores

Rows that are equal are given once.
"""
