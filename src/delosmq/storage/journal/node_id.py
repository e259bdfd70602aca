"""The identity of a journal's broker, kept beside the journal's files."""

import os
import uuid
from pathlib import Path
from typing import Final

from delosmq.model.errors import StorageError

NODE_ID_FILE: Final = "node-id"


def load_node_id(directory: Path) -> bytes:
    """The 16 bytes that every file of the journal in ``directory`` bears, made at its first start.

    Raises:
        StorageError: it can't be read or written, or is no UUID.
    """
    path = directory / NODE_ID_FILE
    try:
        if not path.exists():
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
