"""What somebody sends who means harm: requests and bundles, a table each, and the tests that run every row of them."""
