"""Storing again what is alive in a nearly dead segment, so that the store can free it."""
