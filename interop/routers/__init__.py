"""Connection routers with other people's clients: the routers of Artemis's manual, and what its examples show."""
