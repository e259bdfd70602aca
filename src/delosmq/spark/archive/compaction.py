"""A compaction at work: what it was asked, and what it did; how damaged files are found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class CompactReport:
    """What a compaction did. ``damaged`` files can't be read, and are where they were."""

    files_before: int = 0
    files_after: int = 0
    rows: int = 0
    damaged: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction of the archive in `root` was asked.

    Attributes:
        full_bytes: what files are put together to, about.
        dry_run: count only, change nothing.
        say: gets a line for each partition and for each damaged file.
    """

    root: Path
    full_bytes: int
    dry_run: bool
    say: Callable[[str], None]
    report: CompactReport

    def note(self, partition: str, before: int, after: int) -> None:
        """Count and tell what becomes of a partition."""
        self.report.files_before += before
        self.report.files_after += after
        self.say(f"{partition}: {before} files {'would become' if self.dry_run else 'become'} {after}")

    def are_sound(self, files: Iterable[Path]) -> bool:
        """Whether all can be read; each that can't is told."""
        sound = True
        for file in files:
            if why := damage(file):
                sound = False
                self.report.damaged.append(str(file))
                self.say(f"{file} is damaged and left alone: {why}")
        return sound


def damage(file: Path) -> str:
    """Why a Parquet file can't be read; "" when each of its values can, with checksums where it has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as opened:
            for number in range(opened.num_row_groups):
                opened.read_row_group(number)
    except (pa.ArrowException, OSError) as wrong:
        return str(wrong).strip().partition("\n")[0] or type(wrong).__name__
    return ""
