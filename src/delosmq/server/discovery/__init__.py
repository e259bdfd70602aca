"""The sockets of discovery: groups that announce this broker, and groups that find others."""
