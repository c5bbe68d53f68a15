"""Settings of the service, with defaults and validation."""
