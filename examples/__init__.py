"""Runnable examples; `make run` starts `examples.orders`."""
