"""Management by messages: each names a resource and an operation or attribute of it."""
