"""Attackers on the sessions of a running broker, and clients beside them that go on as if nothing was.

`python -m tests.fuzz.openwire_attack` sends ``DELOSMQ_FUZZ_FRAMES`` frames, chosen by ``DELOSMQ_FUZZ_SEED``.
"""

import gc
import os
import sys
import time
from functools import cache
from pathlib import Path
from random import Random

from delosmq.cli.run import GC_THRESHOLDS
from delosmq.selectors.selector import parse_selector
from delosmq.sessions.host import Peer
from delosmq.sessions.openwire.server.session import OpenWireSession
from delosmq.wire.openwire.commands import KeepAliveInfo
from tests.fuzz.openwire_forged import check_headers, check_message
from tests.fuzz.openwire_frames import FORMS, MANY, SEQUENCE, SLOTS, Arsenal, flipped, spoilt
from tests.fuzz.openwire_longest import TimedBench
from tests.fuzz.openwire_sockets import besiege
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import Client, queue

MOST_FRAMES_PER_CONNECTION = 400
FRAMES_PER_TICK = 16
FRAMES_PER_CHECK = 400
"""Between two messages of the clients that behave."""
FRAMES_PER_LOOK = 1_000
"""Between two looks at the messages of the attackers."""
FRAMES_PER_ROUND = 20_000
"""Between two times that an operator cleans up."""
MANY_MESSAGES = 1_000
"""For consumers that have very many in delivery."""
SOCKET_CONNECTIONS = 25
SOCKET_FRAMES = 1_000
"""In each round over sockets, to a broker of its own."""
Soft = dict[int, list[list[int]]]
"""For each form and frame: places where a bit may change and it remains a command, as far as they were found."""
SOFT_PLACES = 12
"""Kept for each frame."""
MOST_GROWTH_BYTES = 64 * 1024 * 1024
"""Half of it for settings of 10,000 addresses that are remembered, a quarter for what attackers learn of frames."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SEQUENCE = SEQUENCE.to_bytes(8)
# What the attackers make is small and many: rings keep it so. Nothing of theirs may fill what is the others'.
SETTINGS: dict[str, dict[str, object]] = {
    "#": {"dead_letter_address": "DLQ", "default_ring_size": 100},
    "fuzz.many": {"default_ring_size": 4 * MANY_MESSAGES},
    "steady.#": {"default_ring_size": -1},
}

# Of so many parts that no wildcard of the attackers becomes one for it, whichever bit changes.
STEADY = "steady.of.those.who.behave"
STEADY_STOMP = "steady.of.those.who.behave.stomp"
LOOKED_AT = ("fuzz.a", "fuzz.b", "Consumer.x.VirtualTopic.fuzz", "DLQ")


DEAF_SHARE = 0.1
"""Of the connections read nothing."""
MOST_AT_ONCE_BYTES = 1024 * 1024
"""Beyond a limit: what one frame brings, or one message."""


class FrameError(AssertionError):
    """Something gave way; says where, so that it can be repeated."""


@cache
def arsenal(form: int, slot: int) -> Arsenal:
    """Made when first needed: there are many."""
    return Arsenal(*FORMS[form], slot)


def resident_bytes() -> int:
    """Of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


class Attacker(Client):
    """One connection after the other that sends spoilt frames and reads nothing of what it gets.

    Attributes:
        sent: how many frames its sessions were given while open.
        opened: how many connections it had.
    """

    def __init__(self, bench: TimedBench, rng: Random, slot: int, soft: Soft) -> None:
        super().__init__(bench)
        self._longest = bench.longest
        self.rng = rng
        self.slot = slot
        self.sent = 0
        self.opened = 0
        self.last = b""
        self._left = 0
        self._soft = soft
        self._deaf = False
        self._choose()
        self._open()

    def write(self) -> bool:
        longest = self._longest
        began = longest.now()
        touched = self._turn()
        longest.turn(began)
        return touched

    def _turn(self) -> bool:
        outbox = self.session.outbox
        wrote = False
        if self._deaf:
            acceptor = self.bench.acceptor
            waiting = outbox.total_bytes - outbox.reply_bytes
            assert waiting <= acceptor.outbox_limit_bytes + MOST_AT_ONCE_BYTES, f"{waiting} bytes of messages wait"
            assert outbox.reply_bytes <= acceptor.reply_limit_bytes + MOST_AT_ONCE_BYTES, "replies wait without end"
        while not self._deaf and outbox.take():
            wrote = True
            outbox.confirm_written()
        touched = wrote and self.session.handle_written(self.bench.now)
        if self.host.wakes:
            self.host.wakes = 0
            self.session.handle_timer(self.bench.now)
            touched = True
        return touched

    def attack(self, around: int) -> None:
        """One frame; ``around`` is about the newest sequence of the broker."""
        rng = self.rng
        if self._left == 0 or self.host.finished:
            self.reopen()
        self._left -= 1
        self.sent += 1
        frames = self._arsenal.frames
        index = int(rng.random() * len(frames))
        frame = frames[index]
        if _SEQUENCE in frame:
            frame = frame.replace(_SEQUENCE, max(0, around + int(rng.random() * 60) - 10).to_bytes(8))
        soft = self._soft[self._form][index]
        choice = rng.random()
        # The more such places are known, the less is tried out: the end of a connection costs as much as ten frames.
        if choice < (0.85 if len(soft) < SOFT_PLACES else 0.96) and soft:
            self._give(flipped(rng, frame, soft[int(rng.random() * len(soft))]))
        elif choice < 0.97:
            at = int(rng.random() * (len(frame) - 5)) + 5 if len(frame) > 5 else 4
            self._give(flipped(rng, frame, at))
            if not self.host.finished and len(soft) < SOFT_PLACES:
                soft.append(at)
        else:
            self._give(spoilt(rng, frame, frames[int(rng.random() * len(frames))]))

    def reopen(self) -> None:
        """The connection breaks, or has ended; another one comes."""
        self.session.connection_lost()
        self.host.attempts.clear()
        self.host.reasons.clear()
        rng = self.rng
        if rng.random() < 0.05:
            self._choose()
        bench = self.bench
        self.session = bench.protocol.open(
            self.host, Peer("10.0.0.9:9", f"fuzz-{self.slot}-{self.opened}"), bench.acceptor, bench.services, bench.now
        )
        self._open()

    def _choose(self) -> None:
        self._form = self.rng.randrange(len(FORMS))
        self._arsenal = arsenal(self._form, self.slot)
        self._soft.setdefault(self._form, [[] for _ in self._arsenal.frames])

    def _open(self) -> None:
        rng = self.rng
        used = self._arsenal
        session = self.session.session
        assert type(session) is OpenWireSession
        # As if we had offered what the peer insists on.
        session._ours.tight_encoding_enabled = used.form.tight
        session._ours.cache_enabled = used.form.caching
        self.opened += 1
        self._left = rng.randrange(1, MOST_FRAMES_PER_CONNECTION)
        self._deaf = rng.random() < DEAF_SHARE
        start = [used.greeting, used.login, *used.opening[: rng.randrange(len(used.opening) + 1)]]
        if rng.random() < 0.02:
            at = rng.randrange(len(start))
            start[at] = spoilt(rng, start[at], used.login)
        for frame in start:
            self._give(frame)

    def _give(self, frame: bytes) -> None:
        self.last = frame
        session = self.session
        longest = self._longest
        began = longest.now()
        session.receive(frame, self.bench.now)
        longest.read(began, frame)
        if self.host.attempts:
            self.host.attempts.clear()
            session.resume(False, self.bench.now)


class Attack:
    """A broker with attackers, a client of OpenWire and one of STOMP.

    Args:
        seed: the same frames again.

    Attributes:
        looked: how many messages of the attackers were looked at.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.bench = TimedBench(address_settings=SETTINGS)
        self.good = self.bench.connect("ID:steady")
        self.reader = self.good.consume(queue(STEADY), 10)
        self.stomp = StompPeer(self.bench)
        self.stomp.frame("SUBSCRIBE", f"destination:/queue/{STEADY_STOMP}", "id:1", "ack:auto")
        self.stomp.take()
        self.known = set(self.bench.broker.queues)
        rng = Random(seed)
        soft: Soft = {}
        self.attackers = [Attacker(self.bench, rng, slot, soft) for slot in range(SLOTS)]
        self.sent = 0
        self.looked = 0
        self._around = 1
        self.check()

    def run(self, frames: int) -> None:
        """Sends as many frames, and has the others look after every few.

        Raises:
            FrameError: whatever went wrong, with the frame.
        """
        attackers = self.attackers
        for number in range(1, frames + 1):
            attacker = attackers[number % SLOTS]
            try:
                attacker.attack(self._around)
                if number % FRAMES_PER_TICK == 0:
                    self.bench.tick()
            except Exception as error:
                raise FrameError(
                    f"seed {self.seed}, frame {self.sent + number}, form {attacker._arsenal.form.version}:"
                    f" {attacker.last.hex()}"
                ) from error
            if number % FRAMES_PER_CHECK == 0:
                self.check()
            if number % FRAMES_PER_LOOK == 0:
                self.look()
        self.sent += frames

    def check(self) -> None:
        """Those who behave get what they sent, once, in order and nothing else."""
        self.good.publish(queue(STEADY), "one two")
        assert self.reader.bodies() == "one two"
        self._around = self.reader.sequence(1)
        self.reader.done(0, 1)
        self.reader.got.clear()
        self._nothing_came()
        self.stomp.frame("SEND", f"destination:/queue/{STEADY_STOMP}", "receipt:r", body=b"three")
        commands = [frame.command for frame in self.stomp.take()]
        assert sorted(commands) == ["MESSAGE", "RECEIPT"], commands
        for host in (self.good.host, self.stomp.host):
            assert not host.finished, host.reasons
            assert host.reports == [], host.reports

    def look(self) -> None:
        """What attackers sent claims nothing that only the broker says, whoever reads it: decision 0055."""
        bench = self.bench
        for name in LOOKED_AT:
            if name not in bench.broker.queues:
                continue
            reader = bench.connect(f"ID:looks-{self.looked}")
            info = reader.consumer_info(queue(name))
            info.browser = True
            for dispatch in reader.subscribe(info).take():
                check_message(dispatch)
                self.looked += 1
            reader.drop()
            stomp = StompPeer(bench)
            stomp.frame("SUBSCRIBE", f"destination:/queue/{name}", "id:1", "browser:true")
            for frame in stomp.take():
                check_headers(frame.headers)
            stomp.drop()

    def fill(self, messages: int) -> None:
        """Something to have in delivery."""
        self.good.publish(MANY, "m " * messages)
        self._nothing_came()

    def _nothing_came(self) -> None:
        """But beats: in a long run time goes by."""
        left = [one for one in self.good.take() if not isinstance(one, KeepAliveInfo)]
        assert left == [], left

    def clean(self) -> None:
        """All attackers leave; nothing of theirs is left but what an operator has to decide about, and does."""
        for attacker in self.attackers:
            attacker.session.connection_lost()
            assert attacker.host.reports == [], attacker.host.reports
        broker = self.bench.broker
        self.bench.pass_time(100)
        for xid in broker.branches.recover():
            broker.branches.rollback(xid)
        self.bench.tick()
        assert not broker.transactions.open, broker.transactions.open
        for name, found in list(broker.queues.items()):
            if name not in self.known:
                assert not found.holders, name
                broker.resources.delete_queue(name)
        for name, address in list(broker.addresses.items()):
            if name not in (STEADY, STEADY_STOMP) and not address.anycast and not address.multicast:
                broker.resources.delete_address(name, force=True)
        self.bench.tick()
        self.check()

    def resume(self) -> None:
        """They come again."""
        for attacker in self.attackers:
            attacker.reopen()


class Memory:
    """Watches that this process does not grow, once the frames are made and the broker is warm."""

    def __init__(self) -> None:
        gc.collect()
        self._settled = resident_bytes()

    def check(self) -> int:
        """Bytes now."""
        gc.collect()
        resident = resident_bytes()
        growth = resident - self._settled
        assert growth <= MOST_GROWTH_BYTES, f"memory grew by {growth} bytes"
        return resident


def main() -> int:
    """The exit code."""
    frames = int(os.environ.get("DELOSMQ_FUZZ_FRAMES", "1000000"))
    seed = int(os.environ.get("DELOSMQ_FUZZ_SEED", "1"))
    attack = Attack(seed)
    longest = attack.bench.longest
    parse_selector("a = 1")  # the first one makes the parser
    # As the broker does when it has started.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    memory: Memory | None = None
    began = time.monotonic()
    rounds = 0
    while attack.sent + rounds * SOCKET_FRAMES < frames:
        attack.fill(MANY_MESSAGES)
        attack.run(FRAMES_PER_ROUND)
        attack.clean()
        besiege(SOCKET_CONNECTIONS, SOCKET_FRAMES // SOCKET_CONNECTIONS, seed + rounds)
        attack.resume()
        rounds += 1
        sent = attack.sent + rounds * SOCKET_FRAMES
        opened = sum(one.opened for one in attack.attackers) + rounds * SOCKET_CONNECTIONS
        rate = sent / (time.monotonic() - began)
        # From the second round on: threads, password checks and all kinds of frames have had what they need.
        memory = memory if memory is not None or rounds < 2 else Memory()
        resident = (resident_bytes() if memory is None else memory.check()) / (1024 * 1024)
        sys.stderr.write(
            f"{sent} frames, {opened} connections, {rate:.0f} frames/s, {resident:.1f} MiB resident; {longest.told()}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
