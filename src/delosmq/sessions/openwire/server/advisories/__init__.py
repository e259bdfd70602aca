"""Advisories: what the broker tells OpenWire clients about connections, destinations, consumers and messages."""
