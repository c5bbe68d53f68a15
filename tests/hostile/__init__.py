"""What somebody sends who means harm, as tables, and the tests that run every row of them.

`streams` has byte streams, `bodies` has bodies, and `test_requests` sends them. `bundles` has bundles, and
`test_bundles` opens them. A new case is a row of a table. The other tests here are of what no row can say: pace, order,
damage at random.
"""
