"""Real brokers as processes, on loopback, for tests that kill, pause and part them."""
