"""Pairs of rows: how probable it is that two rows are the same thing, by a model that was learned once.

From texts to a probability:

    rows = read_rows([left_columns, right_columns])         # or [columns] for one table; texts from fold_text
    figures = pair_figures(rows, left, right)               # of candidate pairs of row numbers
    rivals = rival_figures(rows, left, right, figures, cosines)  # cosines come with the candidates
    # of one table: one_table_model
    probabilities = two_table_model().of_candidates(all_figures, left, right, same=False)

`gramvec.jobs.matching.match_tables.probabilities_of` does these steps. `gramvec.jobs.matching.candidates` has the pairs
that are worth a look. Rows that are equal are given once.
"""
