"""Training runs: prepared, carried out, kept in a folder, exported."""
