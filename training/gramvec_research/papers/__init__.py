"""The papers, one file each: its runs, tables and claims, and what of it is made here."""
