"""Benchmarks: DelosMQ beside other brokers, on one machine, in one run."""
