"""The operations over HTTP, a file for what they are about."""
