"""Text: characters, and the vocabulary and memo that own the rows of a table, with their files."""
