"""Building the state of a broker again from what its store holds."""
