"""The file `_archive.json`, which says what a directory is the archive of.

```
{"format": 1, "source": "queue:orders", "partitions": [...]}                 of Parquet, before there was another kind
{"format": 2, "kind": "delta", "sources": ["queue:orders", "topic:prices"], "schema_version": 1, "partitions": [...]}
```
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from delosmq.spark.errors import ArchiveError

FORMAT: Final = 2
SCHEMA_VERSION: Final = 1
"""Of the columns: those of delosmq.spark.schema, and day and batch."""
MARKER: Final = "_archive.json"
PARQUET: Final = "parquet"
DELTA: Final = "delta"
KINDS: Final = (PARQUET, DELTA)
PARTITIONS: Final = {PARQUET: ("day", "address", "batch"), DELTA: ("day",)}


@dataclass(frozen=True, slots=True)
class ArchiveClaim:
    """What a directory is the archive of. Sources are as in "queue:orders" and "topic:prices"."""

    kind: str
    sources: tuple[str, ...]

    @property
    def text(self) -> str:
        """The content of the file."""
        wanted = {
            "format": FORMAT,
            "kind": self.kind,
            "sources": list(self.sources),
            "schema_version": SCHEMA_VERSION,
            "partitions": list(PARTITIONS[self.kind]),
        }
        return json.dumps(wanted, indent=1) + "\n"

    @property
    def named(self) -> str:
        """The sources, for people."""
        return ", ".join(self.sources)

    def check(self, marker: str, root: str) -> None:
        """Check that `marker`, the text of the file in `root`, claims the directory for the same.

        Raises:
            ArchiveError: the directory is the archive of something else, of another kind, or of a newer format.
        """
        found = read_claim(marker, root)
        if set(found.sources) != set(self.sources):
            raise ArchiveError(
                "DMQ8052", f"{root} is the archive of {found.named}, not of {self.named}: archive to another directory"
            )
        if found.kind != self.kind:
            raise ArchiveError(
                "DMQ8243",
                f"{root} is an archive of the format {found.kind}, not {self.kind}: say so with --format {found.kind}, "
                "or archive to another directory",
            )


def read_claim(marker: str, root: str) -> ArchiveClaim:
    """What `marker`, the text of the file in `root`, says.

    Raises:
        ArchiveError: it is of a newer format, or of none.
    """
    try:
        found = json.loads(marker)
    except ValueError:
        found = None
    if isinstance(found, dict):
        if found.get("format") == 1 and isinstance(found.get("source"), str):
            return ArchiveClaim(PARQUET, (found["source"],))
        kind, sources = found.get("kind"), found.get("sources")
        known = (found.get("format"), found.get("schema_version")) == (FORMAT, SCHEMA_VERSION) and kind in KINDS
        if known and isinstance(sources, list) and sources and all(isinstance(source, str) for source in sources):
            return ArchiveClaim(str(kind), tuple(sources))
    raise ArchiveError(
        "DMQ8051",
        f"{root}/{MARKER} is of no format that this version knows (1 to {FORMAT}): archive to another directory, or "
        "use the version of DelosMQ that made it",
    )


def local_claim(root: Path) -> ArchiveClaim:
    """What the directory `root` on this machine is the archive of.

    Raises:
        ArchiveError: it is none.
    """
    try:
        text = (root / MARKER).read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise no_archive(str(root)) from None
    return read_claim(text, str(root))


def no_archive(root: str) -> ArchiveError:
    """The error that there is no archive at `root`."""
    return ArchiveError(
        "DMQ8244", f"{root} is no archive, it has no {MARKER}: name the directory that was given as --to"
    )
