"""Transactions: sends and acknowledgements that happen together or not at all."""
