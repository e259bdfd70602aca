"""The consumers of an OpenWire connection: how they are made, fed, acknowledged and closed."""
