"""Review: a local page where a person answers the pairs that teach a matcher most."""
