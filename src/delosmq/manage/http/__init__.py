"""The HTTP API of a broker: JSON under ``/api/v1``, lease rows as Arrow streams, health and metrics."""
