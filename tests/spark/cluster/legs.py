"""What is run on the cluster, one leg after the other: each kills something and tallies its messages."""

import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Final

from delosmq.spark.dead_letters.letters import browse_queue
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import parse_options
from tests.spark import letters
from tests.spark.both_scene import BROKER, OUTPUT_CHARACTERS, BothScene, Tally, tally
from tests.spark.cluster.standalone import StandaloneCluster
from tests.spark.interceptor import Interceptor
from tests.spark.processes import KillableBroker, ProcessTree
from tests.spark.test_archive import read_with_pyarrow

WORKER: Final = "worker"
EXECUTOR: Final = "executor"
ALL_KINDS: Final = (EXECUTOR, "driver-jvm", BROKER, "driver-python", WORKER, "source")
SHORT_FORM: Final = (EXECUTOR, "driver-jvm", BROKER, "source")
"""The first leg kills a worker."""
ARCHIVED_ROWS: Final = 1_000
ARCHIVE_BATCH: Final = 250
LETTERS: Final = 80

Say = Callable[[str], None]


class Stage:
    """A broker, a cluster, and a directory for what they write."""

    def __init__(self, directory: Path, say: Say) -> None:
        self.directory, self.say = directory, say
        self.cluster = StandaloneCluster(self.folder("cluster"))
        self.broker = KillableBroker(directory / "broker")
        self.secret = directory / "secret"
        self.secret.write_text(self.broker.password, "utf-8")

    def folder(self, name: str) -> Path:
        path = self.directory / name
        path.mkdir()
        return path

    def command(self, servers: str, name: str, *options: str) -> list[str]:
        """That of a ready pipeline, as it is typed."""
        login = ["--servers", servers, "--user", self.broker.user, "--password-file", str(self.secret)]
        return [sys.executable, "-m", "delosmq.cli.main", "spark", name, *login, *options]

    def bodies(self, queue: str) -> list[bytes]:
        """What a queue holds."""
        login = {"servers": self.broker.servers, "user": self.broker.user, "password": self.broker.password}
        client = LeaseClient(parse_options({**login, "subscribe": queue}).connection)
        try:
            return [body for rows in browse_queue(client, queue, ("body",)) for body in rows.column(0).to_pylist()]
        finally:
            client.close()

    def stop(self) -> None:
        self.cluster.stop()
        self.broker.stop()


def archive_leg(stage: Stage) -> list[Tally]:
    """`delosmq spark archive` on the cluster loses a worker, with its executor, while rows are read, and goes on."""
    folder = stage.folder("archiving")
    bodies = [b"%d" % number for number in range(ARCHIVED_ROWS)]
    stage.broker.publish("archived", bodies)
    interceptor = Interceptor(stage.broker.servers)
    killed = threading.Event()

    def hook(when: str, path: str, body: bytes) -> None:
        if "/rows" in path and not killed.is_set():
            killed.set()
            stage.cluster.kill_worker()

    interceptor.hook = hook
    to = folder / "archive"
    options = ["--queue", "archived", "--to", str(to), "--max-rows", str(ARCHIVE_BATCH), "--master", stage.cluster.url]
    run = ProcessTree(stage.command(interceptor.servers, "archive", *options), folder, folder)
    code = run.finish()
    interceptor.stop()
    assert killed.is_set(), f"the archive fetched no rows: {_end(folder)}"
    assert code == 0, f"the archive ended with {code}: {_end(folder)}"
    return [tally("archive, which lost a worker", bodies, read_with_pyarrow(to))]


def both_leg(stage: Stage, kinds: Sequence[str], chance: random.Random, until: float = inf) -> list[Tally]:
    """A query to a queue and an archive goes on, or is started anew, while one thing after the other is killed.

    Args:
        until: after this time of the monotonic clock nothing more is killed.
    """
    killed = 0
    elsewhere = {EXECUTOR: stage.cluster.kill_executor, WORKER: lambda: _kill_worker(stage)}
    scene = BothScene(stage.broker, stage.folder("both"), stage.cluster.url, elsewhere)
    try:
        for kind in kinds:
            if time.monotonic() > until:
                break
            scene.kill(kind, chance)
            killed += 1
            stage.say(f"killed {killed} of {len(kinds)}: {kind}; {len(scene.sent)} messages sent so far")
        scene.drain()
        return [
            tally(f"queue that a query wrote, {killed} kills", scene.sent, stage.bodies("out")),
            tally("archive of the same query", scene.sent, read_with_pyarrow(scene.to)),
        ]
    finally:
        scene.stop()


def redrive_leg(stage: Stage) -> list[Tally]:
    """`delosmq spark redrive` is killed amid its batches, and the broker amid those of the run that goes on."""
    folder = stage.folder("redriving")
    bodies = [b"%d" % number for number in range(LETTERS)]
    stage.broker.publish("failing", bodies)
    letters.fail(stage.broker, "failing", LETTERS)
    assert stage.bodies("failing") == [], "what failed as often as it may is still in its queue"
    interceptor = Interceptor(stage.broker.servers)
    options = ["--record", str(folder / "record"), "--max-rows", str(LETTERS // 4)]
    command = stage.command(interceptor.servers, "redrive", *options)

    def run(kill: Callable[[ProcessTree], None], when_wanted: str) -> int:
        tree = ProcessTree(command, folder, folder)
        calls = 0

        def hook(when: str, path: str, body: bytes) -> None:
            nonlocal calls
            calls += when == when_wanted and path.endswith("/publish")
            if calls == 2:
                calls += 1
                kill(tree)
                # Lost with what was killed.
                raise ConnectionAbortedError

        interceptor.hook = hook
        code = tree.finish()
        assert calls > 1, f"redrive published less than two batches: {_end(folder)}"
        return code

    # After: the broker has published, and nobody has heard of it.
    assert run(lambda tree: tree.kill_all(), "after") != 0
    code = run(lambda tree: stage.broker.restart(), "before")
    interceptor.stop()
    assert code == 0, f"redrive ended with {code}: {_end(folder)}"
    return [tally("redriven, driver and broker killed", bodies, stage.bodies("failing"))]


def drawn_kinds(count: int, chance: random.Random) -> list[str]:
    """Each kind about equally often, in an order by chance."""
    kinds = [ALL_KINDS[number % len(ALL_KINDS)] for number in range(count)]
    chance.shuffle(kinds)
    return kinds


def _end(folder: Path) -> str:
    """Of what a command has printed."""
    return (folder / "output").read_text(errors="replace")[-OUTPUT_CHARACTERS:]


def _kill_worker(stage: Stage) -> bool:
    stage.cluster.kill_worker()
    return True
