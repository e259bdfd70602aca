"""The identity of a journal's broker, kept beside the journal's files."""

import os
import uuid
from pathlib import Path
from typing import Final

from delosmq.model.errors import StorageError
from delosmq.storage.journal.files import Files, OsFiles, read_header
from delosmq.storage.journal.manifest import MANIFEST_NAME, node_id_in
from delosmq.storage.journal.records import decode_file_header
from delosmq.storage.journal.spares import FILE_NAME

NODE_ID_FILE: Final = "node-id"


def load_node_id(directory: Path) -> bytes:
    """The 16 bytes that every file of the journal in ``directory`` bears, made at its first start.

    Raises:
        StorageError: it can't be read or written, is no UUID, or is missing although there is a journal.
    """
    path = directory / NODE_ID_FILE
    try:
        if not path.exists():
            _refuse_old_journal(OsFiles(directory), path)
            written = path.with_suffix(".new")
            written.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
            with written.open("rb") as file:
                os.fsync(file.fileno())
            written.rename(path)
        return uuid.UUID(path.read_text(encoding="ascii").strip()).bytes
    except OSError as error:
        raise StorageError(
            "DMQ6001", f"{path} can't be used: {error.strerror}; the broker must be able to write there"
        ) from error
    except ValueError as error:
        raise StorageError(
            "DMQ6002", f"{path} holds no UUID; restore the file from a backup of this instance"
        ) from error


def _refuse_old_journal(files: Files, path: Path) -> None:
    """Raises when ``files`` hold a journal already: a new node id would not be the one in them."""
    names = files.names()
    contents = [read_header(files, name) for name in sorted(names) if FILE_NAME.fullmatch(name)]
    # Files of zeros alone were never used.
    if MANIFEST_NAME not in names and not any(content.strip(b"\0") for content in contents):
        return
    headers = [header for content in contents if (header := decode_file_header(content)) is not None]
    found = node_id_in(files) or (headers[0].node_id if headers else None)
    if found is None:
        remedy = (
            "no header of these files says which it was: restore the journal directory from a backup, or move the "
            "journal's files away"
        )
    else:
        remedy = f"restore it from a backup of this instance, or write {uuid.UUID(bytes=found)} into it"
    raise StorageError("DMQ3036", f"{path} is missing although there is a journal beside it; {remedy}")
