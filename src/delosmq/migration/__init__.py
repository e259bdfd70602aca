"""Takes over the configuration of other brokers."""
