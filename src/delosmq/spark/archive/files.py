"""The files of an archive, wherever Spark can write: listing, marking, sweeping, making durable.

```
DIR/_archive.json                                      what is archived here, see `marker`
DIR/_checkpoint/                                       Spark's checkpoint, or one for each source
DIR/day=2026-03-01/address=orders/batch=QUERY-000000007/part-….parquet
DIR/day=2026-03-01/address=orders/batch=compacted-…/part-0.parquet
DIR/.spark-staging-…/                                  a batch being written, or what a killed one left
DIR/.compact-…/                                        a compaction at work, or what a killed one left
```
Names with a leading ``_`` or ``.`` are invisible to Spark and to pyarrow.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from delosmq.spark.archive.marker import MARKER, ArchiveClaim
from delosmq.spark.errors import ArchiveError, OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGING = ".spark-staging-*"
_NEVER_WRITTEN = frozenset({"http", "https", "ftp", "har", "tcp", "stomp"})
"""What Hadoop only reads, or knows as no place of files. Which others there are, depends on what Spark was given."""


class ArchiveFiles:
    """The directory `root` as Spark's own file systems see it. Runs on: the driver."""

    def __init__(self, spark: "SparkSession", root: str) -> None:
        self.root = root
        # Typed loosely: this is Java's side, reached by name.
        self._jvm: Any = spark._jvm
        self._path: Any = self._jvm.org.apache.hadoop.fs.Path
        self._files: Any = self._path(root).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    def claim(self, claim: ArchiveClaim) -> None:
        """Note what is archived here, or check that it is the same as before.

        Raises:
            ArchiveError: the directory is the archive of something else, or of a newer format.
        """
        marker = self._path(self.root, MARKER)
        if not self._files.exists(marker):
            self._files.mkdirs(self._path(self.root))
            self._write(marker, claim.text)
            return
        claim.check(self.marker(), self.root)

    def exists(self, name: str) -> bool:
        """Whether the directory has a file or directory of that name."""
        return bool(self._files.exists(self._path(self.root, name)))

    def has_days(self) -> bool:
        """Whether any batch was written."""
        return bool(self._glob("day=*"))

    def marker(self) -> str:
        """The text of the marker file."""
        return self._read(self._path(self.root, MARKER))

    def sweep(self) -> int:
        """Remove what killed writers left unfinished; returns how many directories."""
        left = self._glob(STAGING)
        for status in left:
            self._files.delete(status.getPath(), True)
        return len(left)

    def batch(self, key: str) -> dict[str, frozenset[str]]:
        """The directories that hold files of the batch `key`, and the names of those files."""
        found = {}
        for status in self._glob(f"day=*/address=*/batch={key}"):
            names = frozenset(file.getPath().getName() for file in self._files.listStatus(status.getPath()))
            found[status.getPath().toString()] = names
        return found

    def written(self, key: str) -> dict[str, frozenset[str]]:
        """As `batch`, for `make_durable` alone: nothing of another machine's files, which are not asked for."""
        if not self._is_local:
            return {}
        return written_here(Path(unquote_file_uri(self._files.makeQualified(self._path(self.root)).toString())), key)

    def delete(self, directory: str) -> None:
        """Remove a directory of `batch`."""
        self._files.delete(self._path(directory), True)

    def make_durable(self, batch: dict[str, frozenset[str]]) -> None:
        """Wait until the files and directory entries of a batch are on the disk; remote file systems do so themselves.

        The broker forgets what is acknowledged, and Spark itself never syncs a local file.
        """
        if not self._is_local:
            return
        directories: set[Path] = set()
        for directory, names in batch.items():
            path = Path(unquote_file_uri(directory))
            for name in names:
                sync(path / name)
            directories.update((path, path.parent, path.parent.parent, path.parent.parent.parent))
        for path in sorted(directories, reverse=True):
            sync(path)

    @property
    def _is_local(self) -> bool:
        return bool(self._files.getUri().getScheme() == "file")

    def _glob(self, pattern: str) -> list[Any]:
        # The root goes in as it is: only the pattern may hold wildcards.
        return list(self._files.globStatus(self._path(literal(self.root), pattern)) or ())

    def _write(self, path: Any, text: str) -> None:
        """All of it or nothing, by a rename."""
        building = self._path(self.root, f"{MARKER}.new")
        stream = self._files.create(building, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self._files.rename(building, path)

    def _read(self, path: Any) -> str:
        stream = self._files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()


def check_place(location: str, claim: ArchiveClaim | None = None) -> None:
    """Check that `location` is a directory to write to, or can be made; with `claim`, that it is no other archive.

    Leaves nothing behind. A location on another machine is not looked at.

    Raises:
        OptionError: Spark can't write to such a location.
        ArchiveError: it can't be used.
    """
    scheme, host, _ = _parts(location)
    if scheme in _NEVER_WRITTEN or (scheme == "file" and host not in ("", "localhost")):
        raise OptionError(
            "DMQ8063",
            f"Spark can't write to {location}: name a directory, or a place with a file system that Spark has, such as"
            " hdfs:// or s3a://",
        )
    place = local_path(location)
    if place is None:
        return
    try:
        existing = next(path for path in (place, *place.absolute().parents) if path.exists())
        if not existing.is_dir():
            raise ArchiveError("DMQ8060", f"{existing} is no directory: archive to another place than {location}")
        if claim is not None and (place / MARKER).exists():
            claim.check((place / MARKER).read_text(encoding="utf-8", errors="replace"), location)
        # Only a try tells: permission bits say nothing about /proc, a full disk or one mounted read-only.
        with TemporaryDirectory(prefix=".delosmq-", dir=existing):
            pass
    except OSError as wrong:
        raise ArchiveError(
            "DMQ8062",
            f"{location} can't be written to ({wrong.strerror or wrong}): let this user write there, or name another "
            "directory",
        ) from None


def written_here(root: Path, key: str) -> dict[str, frozenset[str]]:
    """The directories of an archive on this machine that hold files of the batch `key`, and the names of those files.

    Two system calls for each day and address; Hadoop's own search takes a hundred times as long.
    """
    found = {}
    for day in _directories(root, "day="):
        for address in _directories(day, "address="):
            directory = os.path.join(address, f"batch={key}")
            if os.path.isdir(directory):
                found[directory] = frozenset(os.listdir(directory))
    return found


def _directories(parent: str | Path, prefix: str) -> list[str]:
    with os.scandir(parent) as entries:
        return [entry.path for entry in entries if entry.name.startswith(prefix) and entry.is_dir()]


def unquote_file_uri(uri: str) -> str:
    """The path in what Hadoop prints for a local file: ``file:/a%b`` with nothing quoted."""
    return uri.removeprefix("file://").removeprefix("file:")


def local_path(location: str) -> Path | None:
    """The path of a location on this machine, None for one elsewhere."""
    scheme, _, path = _parts(location)
    return Path(path) if scheme in ("", "file") else None


def _parts(location: str) -> tuple[str, str, str]:
    """Scheme, host and path of a location; "" for what it lacks.

    As Hadoop takes it apart: no letter of a path is quoted, and none begins something else.
    Source: org.apache.hadoop.fs.Path(String).
    """
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return "", "", location
    if not rest.startswith("//"):
        return scheme.lower(), "", rest
    host, slash, path = rest[2:].partition("/")
    return scheme.lower(), host, slash + path


def literal(location: str) -> str:
    """A location for what takes patterns, as Spark's readers do: none of its letters is one."""
    return "".join(f"\\{letter}" if letter in "{}[]*?\\" else letter for letter in location)


def sync(path: Path) -> None:
    """Wait until a file or directory is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
