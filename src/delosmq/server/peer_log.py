"""The log of what peers cause: a peer that repeats itself fills no disk, and writes no lines of its own.

Of each sentence (its DMQ code) a peer gets `LINES_PER_PEER` lines a minute and all peers together `LINES_PER_CODE`; how
many more there were is said once the minute is over. That minute begins with the first line.
"""

import asyncio
import logging
from typing import Final

from delosmq.model.phrases import counted, one_line

MINUTE_S: Final = 60.0
LINES_PER_PEER: Final = 10
LINES_PER_CODE: Final = 100
MOST_CHARACTERS: Final = 2_000
"""Of one line."""
_PEERS_COUNTED: Final = 1_000
"""Of each sentence; more of them are counted together."""
_OTHERS: Final = "other peers"
_CODE_LETTERS: Final = 7


class OneLine(logging.Filter):
    """Keeps each message on one line, as names in it may come from peers."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        safe = one_line(text, len(text))
        if safe != text:
            record.msg = safe
            record.args = ()
        return True


ONE_LINE: Final = OneLine()


class PeerLog:
    """Writes what peers cause, within bounds. Used within a running loop."""

    def __init__(self, log: logging.Logger, remedy: str = "mend or block these clients") -> None:
        """
        Args:
            remedy: what to do about lines that come too often.
        """
        log.addFilter(ONE_LINE)
        self._log = log
        self._remedy = remedy
        self._ends_at: float = 0.0
        self._timer: asyncio.TimerHandle | None = None
        # Of this minute: lines by code and peer, lines by code, and what was not written by code and peer.
        self._lines: dict[tuple[str, str], int] = {}
        self._of_code: dict[str, int] = {}
        self._suppressed: dict[str, dict[str, int]] = {}

    def warning(self, host: str, message: str) -> None:
        """What went wrong with a peer of that host; the message begins with its code."""
        self._tell(logging.WARNING, host, message)

    def info(self, host: str, message: str) -> None:
        """What a peer of that host did."""
        self._tell(logging.INFO, host, message)

    def debug(self, host: str, message: str) -> None:
        """What a peer of that host did and is seldom asked for."""
        self._tell(logging.DEBUG, host, message)

    def close(self) -> None:
        """Says what was not written so far."""
        if self._timer is not None:
            self._timer.cancel()
        self._end_minute()

    def _tell(self, level: int, host: str, message: str) -> None:
        if not self._log.isEnabledFor(level):
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._ends_at:
            self._end_minute()
            self._ends_at = loop.time() + MINUTE_S
        text = one_line(message, MOST_CHARACTERS)
        code = text[:_CODE_LETTERS]
        of_peer = self._lines.get((code, host), 0)
        of_code = self._of_code.get(code, 0)
        if of_peer < LINES_PER_PEER and of_code < LINES_PER_CODE:
            self._lines[code, host] = of_peer + 1
            self._of_code[code] = of_code + 1
            self._log.log(level, text)
            return
        suppressed = self._suppressed.setdefault(code, {})
        known = host if host in suppressed or len(suppressed) < _PEERS_COUNTED else _OTHERS
        suppressed[known] = suppressed.get(known, 0) + 1
        if self._timer is None:
            self._timer = loop.call_at(self._ends_at, self._end_minute)

    def _end_minute(self) -> None:
        self._timer = None
        suppressed = self._suppressed
        self._suppressed = {}
        self._lines.clear()
        self._of_code.clear()
        self._ends_at = 0.0
        for code, peers in suppressed.items():
            most = max(peers, key=peers.__getitem__)
            others = f" and {counted(len(peers) - 1, 'other')}" if len(peers) > 1 else ""
            self._log.warning(
                f"DMQ6172: {code}: {sum(peers.values())} more of these in the last minute, from {most} "
                f"({peers[most]}){others}; they are not written out: {self._remedy}"
            )


def peer_name(address: object) -> str:
    """``address:port`` of a peer, from what its socket says."""
    if isinstance(address, tuple) and len(address) >= 2:
        host = f"[{address[0]}]" if ":" in str(address[0]) else str(address[0])
        return f"{host}:{address[1]}"
    return "unknown"
