"""The same frames over real sockets, to a whole broker in this process."""

import asyncio
import contextlib
import gc
import logging
import socket
from dataclasses import replace
from random import Random

import delosmq
from delosmq.embedded import default_settings
from delosmq.engine.transactions.transaction import PREPARED
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V12
from tests.fuzz.openwire_frames import SEQUENCE, VERSIONS, Arsenal, flipped, spoilt
from tests.patience import PATIENCE_S
from tests.sessions.support import PASSWORD, USER

_SEQUENCE = SEQUENCE.to_bytes(8)


def broker() -> delosmq.Broker:
    """With one acceptor for both protocols."""
    settings = default_settings()
    acceptor = replace(settings.acceptors[0], protocols=("STOMP", "OPENWIRE"))
    return delosmq.Broker(settings=replace(settings, acceptors=(acceptor,)), user=USER, password=PASSWORD, http=False)


class Steady:
    """A client of STOMP that behaves, and wants to be served at any time."""

    def __init__(self, served: delosmq.Broker) -> None:
        self._socket = socket.create_connection((served.host, served.stomp_port), timeout=PATIENCE_S)
        self._decoder = StompDecoder(StompLimits())
        self._decoder.version = V12
        self._send(f"CONNECT\naccept-version:1.2\nhost:h\nlogin:{USER}\npasscode:{PASSWORD}\n\n\0")
        assert self._next().command == "CONNECTED"
        self._send("SUBSCRIBE\ndestination:/queue/steady\nid:1\nack:auto\nreceipt:0\n\n\0")
        assert self._next().command == "RECEIPT"

    def check(self, number: int) -> None:
        """Gets what it sends, once."""
        self._send(f"SEND\ndestination:/queue/steady\nreceipt:{number}\n\nm{number}\0")
        first, second = self._next(), self._next()
        bodies = [frame.body for frame in (first, second) if frame.command == "MESSAGE"]
        assert bodies == [b"m%d" % number]
        assert {first.command, second.command} == {"MESSAGE", "RECEIPT"}

    def close(self) -> None:
        self._socket.close()

    def _send(self, text: str) -> None:
        self._socket.sendall(text.encode())

    def _next(self) -> StompFrame:
        frame = self._decoder.next_frame()
        while frame is None:
            chunk = self._socket.recv(65536)
            assert chunk, "the broker closed the connection"
            frame = self._decoder.next_frame(chunk)
        return frame


def attack(served: delosmq.Broker, rng: Random, arsenal: Arsenal, frames: int) -> None:
    """One connection, to its end."""
    sent = [arsenal.greeting, arsenal.login, *arsenal.opening]
    for _ in range(frames):
        frame = rng.choice(arsenal.frames).replace(_SEQUENCE, rng.randrange(1, 200).to_bytes(8))
        soft = rng.random() < 0.9 and len(frame) > 5
        spoiled = flipped(rng, frame, rng.randrange(max(5, len(frame) - 8), len(frame))) if soft else b""
        sent.append(spoiled or spoilt(rng, frame, arsenal.login))
    with socket.create_connection((served.host, served.stomp_port), timeout=PATIENCE_S) as peer:
        with contextlib.suppress(ConnectionError):  # it may have had enough before all is sent
            peer.sendall(b"".join(sent))
            peer.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while peer.recv(262144):
                pass


class Noticed(logging.Handler):
    """Keeps what tells of a fault of the broker, in place of its peers."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.exc_info or record.name == "asyncio":
            self.lines.append(self.format(record))


async def left_behind(served: delosmq.Broker) -> tuple[int, list[str]]:
    """How many tasks run, and what the attackers left in the engine. On the broker's loop."""
    engine = served.composed.broker
    left = [f"{queue.name}: {len(queue.holders)} consumers" for queue in engine.queues.values() if queue.holders]
    left += [f"transaction {number}" for number, one in engine.transactions.open.items() if one.state != PREPARED]
    return len(asyncio.all_tasks()), left


def besiege(connections: int, frames: int, seed: int) -> None:
    """As many connections, one after the other, with a client that behaves beside them."""
    rng = Random(seed)
    noticed = Noticed()
    loggers = [logging.getLogger(name) for name in ("delosmq", "asyncio")]
    for logger in loggers:
        logger.addHandler(noticed)
    arsenals = [Arsenal(version, False, False, slot) for slot, version in enumerate(VERSIONS)]
    try:
        with broker() as served:
            steady = Steady(served)
            before = served.call(left_behind(served))
            for number in range(connections):
                attack(served, rng, arsenals[number % len(arsenals)], frames)
                steady.check(number)
            assert served.call(left_behind(served)) == before
            steady.close()
        gc.collect()
    finally:
        for logger in loggers:
            logger.removeHandler(noticed)
    assert noticed.lines == []
