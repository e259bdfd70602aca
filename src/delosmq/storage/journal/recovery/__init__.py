"""What counts of a journal's files at a start."""
