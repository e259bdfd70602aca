"""The server's side of STOMP connections."""
