"""How addresses, queues and subscriptions begin and end."""
