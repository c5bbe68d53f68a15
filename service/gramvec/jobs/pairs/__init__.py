"""Pairs of rows: how probable it is that two rows are the same thing, by a model that was learned once.

From texts to a probability:

    tokens = tokens_of([left_columns, right_columns])      # or [columns] for one table; texts from fold_text
    figures = pair_figures(tokens, left, right)             # of candidate pairs of row numbers
    alike = likeness(figures, cosines)                      # cosines come with the candidates
    rivals = rival_figures(left, right, alike)              # of one table: one_table_rivals
    probabilities = two_table_model().probabilities(figures, rivals)  # of one table: one_table_model

`gramvec.jobs.matching.candidates` has the pairs that are worth a look. Rows that are equal are given once.
"""
