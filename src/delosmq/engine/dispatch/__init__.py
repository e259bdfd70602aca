"""Which message goes to which consumer, and when."""
