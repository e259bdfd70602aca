"""The log: records of decisions, their batches, the ids they use, and the port that a store implements."""
