"""The sending half of a session."""
