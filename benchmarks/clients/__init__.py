"""Clients of Python and Java beside each other on one broker: messages per second, and the client's processor time."""
