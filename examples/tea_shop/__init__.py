"""The tea shop: orders, a worker that retries, dead letters, and a service that is asked for prices.

docs/tea-shop.md leads through it; the tests are in tests/examples/test_tea_shop.py.
"""
