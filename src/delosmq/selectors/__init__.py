"""Selectors: conditions on the headers and properties of a message."""
