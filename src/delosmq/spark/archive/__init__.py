"""The ready pipeline `archive`: queues and topics to files that any reader sees each message once in."""

from delosmq.spark.archive.run import ArchiveReport, ArchiveRun, archive, archive_checked, check_run

__all__ = ["ArchiveReport", "ArchiveRun", "archive", "archive_checked", "check_run"]
