"""Runnable examples: `examples.orders`, which `make run` starts, and `examples.tea_shop`, with our client and kit."""
