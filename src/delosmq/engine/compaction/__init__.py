"""Compaction stores the living messages of a nearly dead segment again, so that the store can free the segment."""
