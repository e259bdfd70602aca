"""Prepared transactions as Artemis names them: by Base64 of an xid. Source: XidImpl.toBase64String."""

import base64
import struct
from datetime import UTC, datetime
from typing import Final

from delosmq.engine.api import JobWaiter
from delosmq.manage.control.transactions import TransactionStatus
from delosmq.model.errors import BrokerError

_FORMAT: Final = struct.Struct(">iHH")
_BYTE: Final = 255


class CommitWaiter(JobWaiter):
    """Knows when a commit has ended, and how."""

    def __init__(self) -> None:
        self.is_over = False
        self.error: BrokerError | None = None

    def on_ended(self, error: BrokerError | None) -> None:
        self.is_over = True
        self.error = error


def xid_as_base64(xid: str) -> str:
    """Of the hexadecimal form of control: branch, global id and four bytes of the format; any other xid as it is."""
    given = bytes.fromhex(xid)
    if len(given) >= _FORMAT.size:
        number, first, second = _FORMAT.unpack_from(given)
        middle = _FORMAT.size + first
        if len(given) == middle + second:
            # Artemis takes each byte modulo 255, with Java's sign.
            shifted = [number >> 8 * i for i in range(4)]
            parts = bytes((abs(one) % _BYTE * (1 if one >= 0 else -1)) & _BYTE for one in shifted)
            given = given[middle:] + given[_FORMAT.size : middle] + parts
    return base64.urlsafe_b64encode(given).decode()


def branch_line(branch: TransactionStatus) -> str:
    """When it was prepared and its xid, for people and for the operations that end it."""
    moment = datetime.fromtimestamp(branch.prepared_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    return f"{moment} base64: {xid_as_base64(branch.xid)} xid: {branch.xid}"
