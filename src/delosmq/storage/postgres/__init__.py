"""The store in PostgreSQL: what a pair of brokers shares that takes over from each other."""
