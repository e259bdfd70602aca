"""Stores: what implements the engine's log port."""
