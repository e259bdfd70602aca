"""Readers of what brokers have to do with each other."""
