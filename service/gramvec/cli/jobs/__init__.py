"""Commands that read files of texts: embed, index and search, match, dedupe, classify."""
