"""Leases as a session kind: a reader's calls with its permissions, and its rows as columns. No IO."""
