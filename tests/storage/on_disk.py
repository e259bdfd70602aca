"""What a journal's files say, to whoever looks at them without opening the journal."""

from delosmq.storage.journal.files import Files
from delosmq.storage.journal.manifest import HEADER, HEADER_SIZE, MANIFEST_NAME, load
from delosmq.storage.journal.records import (
    ACCOUNT_SIZE,
    DATA_START,
    TRAILER_SIZE,
    FileHeader,
    decode_file_header,
    seed_of,
)
from delosmq.storage.journal.recovery.scan import MARK_BYTES, Scan, scan_segment
from delosmq.storage.journal.reserve import ROOM_SHARE
from delosmq.storage.journal.spares import FILE_NAME
from tests.simulation.syncer import StepSyncer
from tests.storage.support import NODE, SMALL

RESERVE = SMALL.file_size_bytes // ROOM_SHARE
"""What is kept for removals in files of the size that the tests use."""


def content_of(files: Files, name: str, size_bytes: int = -1) -> bytes:
    handle = files.open(name)
    try:
        return files.pread(handle, files.size(handle) if size_bytes < 0 else size_bytes, 0)
    finally:
        files.close(handle)


def _headers(files: Files) -> dict[str, FileHeader]:
    """By file; those without a whole header are left out."""
    found: dict[str, FileHeader] = {}
    for name in files.names():
        if FILE_NAME.fullmatch(name):
            header = decode_file_header(content_of(files, name, DATA_START))
            if header is not None:
                found[name] = header
    return found


def _is_begun(files: Files, name: str, header: FileHeader) -> bool:
    start = content_of(files, name, DATA_START + MARK_BYTES)
    return start.endswith(header.mark.to_bytes(MARK_BYTES, "little"), DATA_START)


def open_header(files: Files) -> tuple[str, FileHeader]:
    """File and header of the segment that was begun last."""
    begun = [(name, header) for name, header in _headers(files).items() if _is_begun(files, name, header)]
    return max(begun, key=lambda found: found[1].number)


def open_segment(files: Files) -> Scan:
    """The segment that was begun last, as far as it is written."""
    name, header = open_header(files)
    return scan_segment(content_of(files, name), header, name, seed_of(header.number))


def room(files: Files) -> int:
    """What the open segment still takes, in bytes, less what its accounts take twice."""
    scan = open_segment(files)
    footer = sum(map(len, scan.rows)) + ACCOUNT_SIZE * len(scan.accounts) + TRAILER_SIZE
    return scan.header.size_bytes - scan.end - footer


def segments(files: Files) -> set[int]:
    """The segments that count."""
    manifest = load(files, NODE)
    assert manifest is not None
    return {*manifest.sealed, manifest.opened, open_header(files)[1].number}


def ready_files(syncer: StepSyncer) -> list[FileHeader]:
    """Those made for the next segments of which the journal has heard."""
    _, opened = open_header(syncer.disk)
    unheard = {getattr(report, "name", "") for report in syncer.reports}
    return [
        header
        for name, header in _headers(syncer.disk).items()
        if header.number > opened.number and name not in unheard
    ]


def manifest_mark(files: Files) -> bytes:
    """What each edit of the manifest begins with."""
    mark: int = HEADER.unpack_from(content_of(files, MANIFEST_NAME, HEADER_SIZE))[4]
    return mark.to_bytes(MARK_BYTES, "little")
