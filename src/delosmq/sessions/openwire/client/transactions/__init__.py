"""Transactions of the client: of its own, and branches of distributed ones."""
