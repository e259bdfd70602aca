"""Spark reads and writes DelosMQ beside Spark's own Kafka source and sink, in one run."""
