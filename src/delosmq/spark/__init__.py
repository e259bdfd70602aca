"""DelosMQ for Spark: the data source ``delosmq`` and the pipelines built on it.

Importing this package loads neither Spark nor pyarrow nor broker code, because executors and Spark's lookup of data
sources import it often.
"""
