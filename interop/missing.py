"""What ends a run without a verdict."""


class Missing(Exception):
    """Something the programs need can't be had here; the message is one sentence that says what and what to do."""
