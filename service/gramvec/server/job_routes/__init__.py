"""Routes of jobs over tables: a search in an index, and labels by a head."""
