"""The data source ``delosmq``: what ``spark.readStream.format("delosmq")`` and ``spark.read.format("delosmq")`` are.

Source: pyspark/sql/datasource.py of 4.3.0.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from delosmq.spark.errors import OptionError, SchemaMismatchError
from delosmq.spark.options import SourceOptions, check_batch, check_streaming, parse_options
from delosmq.spark.schema import spark_schema
from delosmq.spark.source.browse_reader import BrowseReader, PushdownReader
from delosmq.spark.source.stream_reader import LeaseStreamReader
from delosmq.spark.stock.options import (
    StockOptions,
    check_stock_batch,
    check_stock_streaming,
    parse_stock_options,
    speaks_openwire,
)
from delosmq.spark.stock.readers import StockBrowseReader, StockStreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DelosSource(DataSource):
    """``spark.readStream.format("delosmq")`` and ``spark.read.format("delosmq")``.

    Runs on: a Python process beside the driver. Pickled: to the source process and to executors.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        # The base class would keep the raw options, password included, on the instance. What is wrong with them is
        # kept until a reader is asked for, because the options may be those of a writer.
        self._parsed: SourceOptions | StockOptions | OptionError
        try:
            self._parsed = parse_stock_options(options) if speaks_openwire(options) else parse_options(options)
        except OptionError as wrong:
            self._parsed = wrong.with_traceback(None)

    @classmethod
    def name(cls) -> str:
        """What goes into ``format()``."""
        return "delosmq"

    @property
    def parsed(self) -> SourceOptions | StockOptions:
        """The options, checked."""
        if isinstance(self._parsed, OptionError):
            raise self._parsed
        return self._parsed

    def schema(self) -> "StructType":
        """The columns asked for; see `delosmq.spark.schema`."""
        return spark_schema(self.parsed.columns)

    def streamReader(self, schema: "StructType") -> LeaseStreamReader | StockStreamReader:
        # Spark's runner hides what is raised here behind an UnboundLocalError; so the reader's calls raise it.
        options, refusal = self.parsed, None
        try:
            if isinstance(options, StockOptions):
                check_stock_streaming(options)
            else:
                check_streaming(options)
            self._check_schema(schema)
        except (OptionError, SchemaMismatchError) as wrong:
            refusal = wrong.with_traceback(None)
        if isinstance(options, StockOptions):
            return StockStreamReader(options, refusal)
        return LeaseStreamReader(options, refusal)

    def reader(self, schema: "StructType") -> BrowseReader | StockBrowseReader:
        """The reader of a batch query."""
        options = self.parsed
        if isinstance(options, StockOptions):
            check_stock_batch(options)
            self._check_schema(schema)
            return StockBrowseReader(options)
        check_batch(options)
        self._check_schema(schema)
        return PushdownReader(options) if options.pushdown else BrowseReader(options)

    def _check_schema(self, schema: "StructType") -> None:
        if schema != self.schema():
            raise SchemaMismatchError(
                "DMQ8005", "the data source delosmq has its own columns: leave schema() out and use the option columns"
            )
