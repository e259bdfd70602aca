"""What a connection needs of its surroundings: time and chance, TLS, its ids, and which broker is tried next."""
