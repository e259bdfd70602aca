"""Puts the small files of a Delta Lake archive together: a version of the table in which others read the same rows."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from delosmq.spark.archive.compaction import Compaction
from delosmq.spark.archive.delta import open_table, sync_log


def compact_table(work: Compaction) -> None:
    """Compact each day, then delete files that no version of the last 7 days needs (Delta's own retention)."""
    table = open_table(work.root)
    if table is None:
        return
    before = table.version()
    for day in sorted({partition["day"] for partition in table.partitions()}):
        files = _small_files(table, day, work.full_bytes)
        # Reading is all that tells; Delta Lake's files have no checksums of their own.
        if len(files) < 2 or not work.are_sound(work.root / file for file in files):
            continue
        if work.dry_run:
            work.note(f"day={day}", len(files), 1)
            continue
        done = table.optimize.compact(partition_filters=[("day", "=", day)], target_size=work.full_bytes)
        if done["numFilesRemoved"]:
            work.note(f"day={day}", done["numFilesRemoved"], done["numFilesAdded"])
    if work.dry_run:
        return
    sync_log(work.root, before)
    if table.vacuum():
        table.vacuum(dry_run=False)


def _small_files(table: Any, day: str, full_bytes: int) -> list[Path]:
    """Paths below the table's directory of the files of `day` that are worth putting together."""
    import pyarrow as pa

    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return [
        Path(unquote(action["path"]))
        for action in actions
        if str(action["partition.day"]) == day and action["size_bytes"] <= full_bytes // 2
    ]
