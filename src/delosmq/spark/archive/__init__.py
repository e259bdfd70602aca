"""The ready pipeline `archive`: queues and topics to files that any reader sees each message once in."""

from delosmq.spark.archive.compact import compact_archive
from delosmq.spark.archive.compaction import CompactReport
from delosmq.spark.archive.read import read_archive
from delosmq.spark.archive.run import ArchiveReport, ArchiveRun, archive, archive_checked, check_run

__all__ = [
    "ArchiveReport",
    "ArchiveRun",
    "CompactReport",
    "archive",
    "archive_checked",
    "check_run",
    "compact_archive",
    "read_archive",
]
