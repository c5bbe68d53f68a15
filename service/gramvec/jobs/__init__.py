"""Jobs over tables: match, deduplicate, classify, search, embed files, review.

Each package is a job or what jobs share: `common` (options, progress, journals), `tables` (readers and writers),
`report` (pages of HTML), `pairs` (the model of two rows). The core of gramvec, from `text` to `explain`, imports none.
"""
