"""What strangers do to a service, and what machines do to it. The long runs are in benchmarks/soak (`make soak`)."""
