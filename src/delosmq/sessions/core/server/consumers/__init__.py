"""The receiving half of a session."""
