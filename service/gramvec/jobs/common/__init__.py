"""Jobs: records that read files, work and write files, and what they share."""
