"""Text: characters and their normalization, the vocabulary and the memo that own the rows of a table, and their files."""
