"""Near-duplicates in one file, or beside an index: by the score of matching, numbers and codes compared."""
