"""Everything at once: one seed drives clock, turns, disk, crashes and clients of a whole broker."""
