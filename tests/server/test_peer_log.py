"""What peers cause in the log: bounded for each sentence and peer, counted beyond, and never lines of their own."""

import asyncio
import logging

import pytest

from delosmq.server import peer_log
from delosmq.server.client_audit import ClientAudit
from delosmq.server.peer_log import LINES_PER_CODE, LINES_PER_PEER, MOST_CHARACTERS, PeerLog
from tests.server.support import Logged, running


def made(level: int = logging.NOTSET) -> tuple[PeerLog, list[str]]:
    logger = logging.Logger("test", level)
    handler = Logged()
    logger.addHandler(handler)
    return PeerLog(logger), handler.lines


async def test_a_peer_that_repeats_itself_is_counted():
    log, lines = made()
    for number in range(1_000):
        log.warning("10.0.0.1", f"DMQ5116: number {number}")
    log.warning("10.0.0.2", "DMQ5116: another peer")
    log.warning("10.0.0.1", "DMQ5009: another sentence")
    assert len(lines) == LINES_PER_PEER + 2
    log.close()
    assert lines[-1].startswith("DMQ6172: DMQ5116: 990 more of these in the last minute, from 10.0.0.1 (990);")
    assert len(lines) == LINES_PER_PEER + 3


async def test_what_is_deleted_as_it_is_unused_has_a_line_and_a_count_beyond():
    logger = logging.getLogger("test_peer_log")
    handler = Logged()
    child = logger.getChild("audit")
    child.addHandler(handler)
    child.setLevel(logging.INFO)
    audit = ClientAudit()
    audit.begin(logger)
    audit.deleted_unused("", "news", 0)
    for number in range(30):
        audit.deleted_unused(f"q{number}", "orders", number)
    audit.close()
    child.removeHandler(handler)
    assert handler.lines[0] == "DMQ6184: address 'news' was not used any more and is deleted (auto-delete-addresses)"
    assert handler.lines[2] == (
        "DMQ6184: queue 'q1' of address 'orders' with 1 message was not used any more and is deleted"
        " (auto-delete-queues)"
    )
    assert len(handler.lines) == 1 + LINES_PER_PEER + 1
    assert handler.lines[-1].startswith("DMQ6172: DMQ6184: 20 more of these")


async def test_many_peers_are_bounded_together_and_what_is_remembered_of_them_too():
    log, lines = made()
    for number in range(5_000):
        log.warning(f"10.0.{number // 250}.{number % 250}", "DMQ5116: x")
    assert len(lines) == LINES_PER_CODE
    log.close()
    assert "4900 more" in lines[-1]
    assert lines[-1].count("DMQ5116") == 1
    assert "1000 others" in lines[-1]


async def test_the_count_comes_when_the_minute_is_over_and_then_lines_come_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(peer_log, "MINUTE_S", 0.02)
    log, lines = made()
    for _ in range(LINES_PER_PEER + 1):
        log.info("h", "DMQ6704: x")
    async with asyncio.timeout(10):
        while not lines[-1].startswith("DMQ6172"):  # noqa: ASYNC110 - what is waited for happens in this loop
            await asyncio.sleep(0)
    log.info("h", "DMQ6704: again")
    assert lines[-1] == "DMQ6704: again"


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("a\n2026-01-01 CRITICAL DMQ6006: lie", r"a\n2026-01-01 CRITICAL DMQ6006: lie"),
        ("\x1b[2J\r\0\x85\u2028\u202e", r"\x1b[2J\r\x00\x85\u2028\u202e"),
        ("grün ☕ \\n", "grün ☕ \\n"),
    ],
)
async def test_texts_of_peers_stay_on_their_line(said: str, written: str):
    log, lines = made()
    log.warning("h", f"DMQ5116: {said}")
    assert lines == [f"DMQ5116: {written}"]


async def test_long_texts_are_cut():
    log, lines = made()
    log.warning("h", "DMQ5116: " + "x" * 100_000)
    assert len(lines[0]) < MOST_CHARACTERS + 100
    assert lines[0].endswith("more characters)")


async def test_what_operators_wrote_is_not_cut_and_stays_on_its_line():
    logger = logging.Logger("test")
    handler = Logged()
    logger.addHandler(handler)
    PeerLog(logger)
    logger.warning("DMQ6152: %s", "q" * 10_000)
    logger.warning("DMQ2657: queue '%s'", "a\nDMQ6006: lie")
    assert handler.lines == [f"DMQ6152: {'q' * 10_000}", r"DMQ2657: queue 'a\nDMQ6006: lie'"]


async def test_what_is_not_wanted_is_not_counted():
    log, lines = made(logging.WARNING)
    for _ in range(2 * LINES_PER_PEER):
        log.info("h", "DMQ6181: x")
    log.close()
    assert lines == []


async def test_a_flood_of_refused_frames_and_logins_leaves_few_lines():
    async with running() as server:
        for _ in range(3 * LINES_PER_PEER):
            peer = await server.open()
            peer.send("CONNECT\naccept-version:1.2\nhost:h\nlogin:nobody\npasscode:wrong\n\n\0")
            await peer.closed()
            peer = await server.connect()
            peer.send("ACK\nid:no\\nsuch\n\n\0")
            await peer.closed()
            peer = await server.open()
            peer.send(b"\x16\x03 what is this?\n")
            await peer.closed()
        lines = server.logged.lines
        assert 3 <= len(lines) <= 3 * LINES_PER_PEER
        assert all(line.isprintable() for line in lines)
