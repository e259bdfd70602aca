"""Sample input, made by seeded scripts."""
