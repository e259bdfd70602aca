"""Connection routers: which broker a connection belongs to. Pure: times and chance come in as arguments."""
