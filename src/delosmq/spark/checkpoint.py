"""Mends what a kill leaves half written in a local checkpoint of Spark, where that can lose and repeat nothing.

Spark writes a batch's end to ``offsets/N``, processes the batch, then writes ``commits/N``; ``metadata`` holds the
query's id. A file that was cut off stops every later run. The newest of each may go:

- ``offsets/N`` without ``commits/N``: the next run asks the broker after N-1 again and is answered the same lease. If
  that was acknowledged already, which takes a power cut, the broker says so instead of answering.
- ``commits/N``, where ``offsets/N+1`` is not there yet: the batch is repeated from ``offsets/N``, and the archive
  replaces its files.
- ``metadata``, where no batch was ever planned: Spark makes a new id, which nothing carries yet.
"""

import json
import re
from pathlib import Path
from typing import Final

from delosmq.spark.errors import ArchiveError

_OFFSETS: Final = "offsets"
_COMMITS: Final = "commits"
_METADATA: Final = "metadata"
_VERSION: Final = re.compile(r"v\d+")
_NAMED: Final = "v2"
"""Of offset files whose lines begin with the source's name and a colon."""
_NO_OFFSET: Final = "-"
"""In the line of a source that has none yet."""
_CUT_OFF: Final = object()
"""What is no JSON."""


def heal_checkpoint(checkpoint: Path) -> list[str]:
    """Removes files that were cut off, and says which; a checkpoint that is whole, or not there, stays as it is.

    Raises:
        ArchiveError: a damaged file can't go without losing or repeating messages; nothing was removed.
    """
    damaged: list[tuple[Path, str]] = []
    offsets, commits = _numbers(checkpoint / _OFFSETS), _numbers(checkpoint / _COMMITS)
    newest_commit = commits[-1] if commits else -1
    if commits and not _is_whole_commit(checkpoint / _COMMITS / str(newest_commit)):
        if offsets and offsets[-1] > newest_commit:
            # Spark takes a batch as done when the next one is planned, with or without its commit file: it would
            # repeat nothing. And a kill can't cut off a file that was whole before the next batch was planned.
            raise _beyond_healing(checkpoint / _COMMITS / str(newest_commit))
        damaged.append((checkpoint / _COMMITS / str(newest_commit), f"batch {newest_commit} is repeated"))
        newest_commit = commits[-2] if len(commits) > 1 else -1
    newest_offset = offsets[-1] if offsets else -1
    if offsets and not _is_whole_plan(checkpoint / _OFFSETS, *offsets[-2:]):
        if newest_offset <= newest_commit:
            raise _beyond_healing(checkpoint / _OFFSETS / str(newest_offset))
        damaged.append((checkpoint / _OFFSETS / str(newest_offset), f"batch {newest_offset} is planned again"))
    metadata = checkpoint / _METADATA
    if metadata.exists() and not _holds_id(metadata):
        if offsets or commits:
            raise _beyond_healing(metadata)
        damaged.append((metadata, "no batch was planned, so the query gets a new id"))
    for path, _ in damaged:
        _remove(path)
    return [f"removed {path}, which a kill cut off: {what}" for path, what in damaged]


def _numbers(directory: Path) -> list[int]:
    """The batches that have a file, in order."""
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isascii() and path.name.isdigit())


def _is_whole_commit(path: Path) -> bool:
    version, *lines = _read(path).splitlines() or [""]
    return bool(_VERSION.fullmatch(version) and lines) and all(isinstance(_decode(line), dict) for line in lines)


def _is_whole_plan(directory: Path, *numbers: int) -> bool:
    """Whether the offset file of the last of `numbers` is whole; the one before it says how many sources there are.

    It has a line about the batch, and one for each source: the JSON of its offset, or "-". The last has no end. Of a
    number that was cut off a number is left, but a lower one than the source had reached.
    """
    offsets = _decode_plan(_read(directory / str(numbers[-1])))
    if len(numbers) == 1 or not offsets:
        return bool(offsets)
    before = _decode_plan(_read(directory / str(numbers[0])))
    if len(offsets) != len(before):
        return len(offsets) > len(before)
    return not _went_back(offsets[-1], before[-1])


def _decode_plan(text: str) -> list[object]:
    """The offsets in an offset file, None for one that is not there yet; empty where a line is cut off."""
    version, *lines = text.split("\n")
    if not _VERSION.fullmatch(version) or len(lines) < 2 or not isinstance(_decode(lines[0]), dict):
        return []
    encoded = [line.partition(":")[2] if version == _NAMED else line for line in lines[1:]]
    offsets = [None if line == _NO_OFFSET else _decode(line) for line in encoded]
    return [] if _CUT_OFF in offsets else offsets


def _went_back(offset: object, before: object) -> bool:
    if isinstance(offset, int) and isinstance(before, int):
        return offset < before
    return offset is None and before is not None


def _holds_id(path: Path) -> bool:
    decoded = _decode(_read(path))
    return isinstance(decoded, dict) and bool(decoded.get("id"))


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def _decode(text: str) -> object:
    """What `text` is as JSON; `_CUT_OFF` when it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return _CUT_OFF


def _remove(path: Path) -> None:
    # The checksum of a file that is gone would be held against the next one of its name.
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.unlink()


def _beyond_healing(path: Path) -> ArchiveError:
    return ArchiveError(
        "DMQ8059",
        f"{path} is damaged, and what it said can't be known: keep this directory as it is, release the group "
        "(POST /api/v1/leases/GROUP/release), and archive into a new directory with a new group",
    )
