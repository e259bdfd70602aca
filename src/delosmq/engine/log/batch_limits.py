"""Limits of a batch: what it may take of the store, and the answers to whether there is room for it."""

from typing import Final

FITS: Final = 0
WAITS: Final = 1
NO_ROOM: Final = 2
"""Whether there is room for what shall be stored: there is, there is when the store has more files ready, the disk is
full."""
FILE_MARGIN_BYTES: Final = 8 * 1024
"""What a journal file holds beside its blocks, and rather more."""


def ordinary_batch_bytes(file_size_bytes: int) -> int:
    """A batch of at most so much leaves its reserve to a file that is new; a larger one needs `Store.ask_large`."""
    return file_size_bytes // 2


def largest_batch_bytes(file_size_bytes: int) -> int:
    """What a batch may take at most: a new file without the state, an eighth, and without what is for lists."""
    return file_size_bytes - file_size_bytes // 8 - file_size_bytes // 16 - FILE_MARGIN_BYTES
