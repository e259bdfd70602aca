"""The port of decoders: the bytes of one peer in, its frames out."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class FrameDecoder(ABC):
    """Cuts a byte stream into frames.

    What was read from the peer is given to `next_frame`, which is called again, without, until it gives None.
    """

    @property
    @abstractmethod
    def buffered_bytes(self) -> int:
        """Bytes that are not decoded yet."""

    @abstractmethod
    def next_frame(self, chunk: bytes = b"") -> object | None:
        """The next complete frame, or None when more bytes are needed or the decoder is closed.

        Args:
            chunk: what was read from the peer since the last call.

        Raises:
            PeerError: what came is no frame, or too large; once. The decoder is closed then and has freed its bytes.
        """

    @abstractmethod
    def close(self) -> None:
        """Ends reading, and frees what is held."""
