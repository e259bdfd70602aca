"""Where Spark finds the data source ``delosmq``: it imports every top-level module called ``pyspark_…``."""

from delosmq.spark.sink.writer import DelosDataSource as DefaultSource

__all__ = ["DefaultSource"]
