"""How long a test waits for what has to come, before it fails: one time for all, as what comes costs no waiting."""

from typing import Final

PATIENCE_S: Final = 60.0
"""Longer than two cores that start Java, compile and kill brokers beside a test keep it from running."""
