"""Puts the small files of an archive together. Needs no Spark."""

from typing import Final

from delosmq.spark.archive.compact_files import compact_files
from delosmq.spark.archive.compact_table import compact_table
from delosmq.spark.archive.compaction import Compaction, CompactReport
from delosmq.spark.archive.files import local_path
from delosmq.spark.archive.locks import compacting
from delosmq.spark.archive.marker import DELTA, local_claim
from delosmq.spark.errors import OptionError
from delosmq.spark.pipeline import Say

FULL_BYTES: Final = 128 * 1024 * 1024
"""What files are put together to: Spark reads that much in one task. A file above half of it is not touched."""


def compact_archive(
    path: str, *, full_bytes: int = FULL_BYTES, dry_run: bool = False, on_progress: Say | None = None
) -> CompactReport:
    """Put small files together, into files of about `full_bytes`. Safe while an archive runs into `path`.

    Files that can't be read are named in the report and left alone.

    Raises:
        OptionError: `path` is not on this machine.
        ArchiveError: it is no archive, another compaction is at work, or the file system can't exchange directories.
    """
    root = local_path(path)
    if root is None:
        raise OptionError(
            "DMQ8242",
            f"an archive at {path} can't be compacted: name a directory of this machine, which may be mounted",
        )
    claim = local_claim(root)
    work = Compaction(root, full_bytes, dry_run, on_progress or (lambda line: None), CompactReport())
    with compacting(root):
        (compact_table if claim.kind == DELTA else compact_files)(work)
    return work.report
