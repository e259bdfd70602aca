"""Addresses and queues, as sessions make and see them."""
