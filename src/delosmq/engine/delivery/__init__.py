"""The end of a delivery: acknowledged, returned, expired."""
