"""STOMP sessions: the server's side of one connection."""
