"""A Python source whose rows are in memory: what remains of a source when no broker and no network is behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from benchmarks.spark.rows import SETS, mapped
from delosmq.spark.schema import spark_schema


class MemoryReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The same partition again and again, from a file that is mapped."""

    def __init__(self, path: str, rows: int, batch: int, partitions: int) -> None:
        self._path = path
        self._rows = rows
        self._batch = batch
        self._partitions = partitions

    def initialOffset(self) -> dict[str, Any]:
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._batch)

    def prepareForTriggerAvailableNow(self) -> None:
        """It has an end anyway."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return {"row": min(self._rows, start["row"] + self._batch)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self._partitions)] if end["row"] > start["row"] else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from mapped(self._path)


class MemorySource(DataSource):
    """Options: path, columns (a name of `SETS`), rows, batch, partitions."""

    @classmethod
    def name(cls) -> str:
        return "bench_memory"

    def schema(self) -> StructType:
        return spark_schema(SETS[self.options["columns"]])

    def streamReader(self, schema: StructType) -> MemoryReader:
        numbers = [int(self.options[name]) for name in ("rows", "batch", "partitions")]
        return MemoryReader(self.options["path"], *numbers)
