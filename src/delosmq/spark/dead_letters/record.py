"""The record of a redrive: what went where. One file for each batch, in whole or not at all."""

import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from delosmq.spark.errors import PipelineError

JSON_LINES, PARQUET = "jsonl", "parquet"
RECORD_FORMATS: Final = (JSON_LINES, PARQUET)


class RedriveRecord:
    """A directory of such files, readable as one data set.

    Raises:
        PipelineError: it can't be written to.
    """

    def __init__(self, directory: str, kind: str) -> None:
        self._directory = Path(directory)
        self._kind = kind
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            probe = self._directory / f".probe-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as wrong:
            raise self._refusal(wrong) from None

    def write(self, incarnation: str, number: int, rows: Sequence[dict[str, Any]]) -> None:
        """The file of a batch, durable; the one that an earlier run wrote stays."""
        file = self._directory / f"{incarnation}-{number:09d}.{self._kind}"
        if file.exists():
            return
        building = file.with_name(f".{file.name}.new")
        try:
            self._fill(building, rows)
            _sync(building)
            building.replace(file)
            _sync(self._directory)
        except OSError as wrong:
            raise self._refusal(wrong) from None

    def _fill(self, file: Path, rows: Sequence[dict[str, Any]]) -> None:
        if self._kind == PARQUET:
            import pyarrow as pa
            import pyarrow.parquet as parquet

            parquet.write_table(pa.Table.from_pylist(list(rows)), file)
            return
        with open(file, "w", encoding="utf-8") as lines:
            lines.writelines(f"{json.dumps(row, default=datetime.isoformat)}\n" for row in rows)

    def _refusal(self, wrong: OSError) -> PipelineError:
        return PipelineError(
            "DMQ8238",
            f"the record can't be written to {self._directory} ({wrong.strerror or wrong}): make room there, or name"
            " another directory, and start again; it goes on where it was",
        )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
