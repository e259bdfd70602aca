"""Programs of real clients, against DelosMQ and against the brokers it stands in for: what they see must be equal."""
