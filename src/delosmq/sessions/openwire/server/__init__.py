"""The server's side of OpenWire connections."""
