"""OpenWire: the unmodified Java client of ActiveMQ against DelosMQ and against ActiveMQ Classic."""
