"""Local transactions, and branches of distributed ones."""
