"""Sockets, timers and threads around the sessions: the only part of a broker that waits."""
