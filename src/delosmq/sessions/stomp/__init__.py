"""STOMP sessions: `server` is the side of the broker."""
