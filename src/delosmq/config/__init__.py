"""Configuration files: reads, checks and writes them, and fills the settings of `delosmq.model`."""
