"""One queue and its consumers: pending messages, credit, rings, last values, limits of what may wait."""
