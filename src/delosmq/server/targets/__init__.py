"""How routers learn which other brokers are ready."""
