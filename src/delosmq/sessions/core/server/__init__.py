"""The server's side of CORE."""
