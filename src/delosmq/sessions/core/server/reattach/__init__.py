"""Sessions that outlive their connection."""
