"""What every room of the engine uses: work in slices, appointments, the order of a queue, what is told to listeners."""
