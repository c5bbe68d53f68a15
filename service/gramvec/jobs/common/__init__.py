"""What jobs share: options in a record, how a run begins and ends, watchers, bad rows, and outputs that continue."""
