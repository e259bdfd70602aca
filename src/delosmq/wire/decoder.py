"""The port of decoders: the bytes of one peer in, its frames out."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class FrameDecoder(ABC):
    """Cuts a byte stream into frames: `feed` bytes, then call `next_frame` until it gives None."""

    @property
    @abstractmethod
    def buffered_bytes(self) -> int:
        """Bytes that are not decoded yet."""

    @abstractmethod
    def feed(self, chunk: bytes) -> None:
        """Adds what was read from the peer; nothing happens once the decoder is closed."""

    @abstractmethod
    def next_frame(self) -> object | None:
        """The next complete frame, or None when more bytes are needed or the decoder is closed.

        Raises:
            PeerError: what came is no frame, or too large; once. The decoder is closed then and has freed its bytes.
        """

    @abstractmethod
    def close(self) -> None:
        """Ends reading, and frees what is held."""
