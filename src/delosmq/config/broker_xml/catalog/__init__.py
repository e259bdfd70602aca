"""The names of broker.xml, and what becomes of each."""
