"""The bodies and queries of requests, checked by pydantic: strict types, no unknown fields."""
