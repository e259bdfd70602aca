"""Leases: messages that a reader may read again until it acknowledges them."""
