"""Routers, their targets and the clients that log in, with a seeded clock and network."""
