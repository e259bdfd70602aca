"""Recovery: which of a journal's files and batches count at a start."""
