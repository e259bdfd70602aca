"""Cases of the Python client that run on any broker of OpenWire: DelosMQ, and ActiveMQ Classic in `make interop`."""
