"""SIGHUP: `delosmq run` takes over what changed in its files, says what waits, and goes on (a real process)."""

# BROKER-5

import asyncio
import logging
import re
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from delosmq.cli.run import Reloads
from delosmq.composition import ComposedBroker
from delosmq.config.instance import load_instance
from delosmq.model.errors import StorageError
from tests.cli.processes import PASSWORD, Running, call


class Peer:
    """A STOMP client that stays."""

    def __init__(self, port: int, user: str, password: str, tls: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname="127.0.0.1")
        self._seen = b""
        self.login = self.ask(f"CONNECT\naccept-version:1.2\nhost:x\nlogin:{user}\npasscode:{password}\n\n")

    def ask(self, frame: str) -> str:
        """Sends a frame; the next one that comes."""
        self._socket.sendall(frame.encode() + b"\0")
        return self.next()

    def next(self) -> str:
        """The next frame that comes."""
        while b"\0" not in self._seen:
            chunk = self._socket.recv(65536)
            assert chunk, self._seen
            self._seen += chunk
        answer, _, self._seen = self._seen.partition(b"\0")
        return answer.decode().lstrip("\n")

    def send(self, queue: str) -> str:
        return self.ask(f"SEND\ndestination:/queue/{queue}\nreceipt:r\n\nx")

    def close(self) -> None:
        self._socket.close()


def end(running: Running) -> None:
    """As asked, and well."""
    running.process.terminate()
    assert running.process.wait(60) == 0
    assert running.process.stderr is not None
    running.process.stderr.close()


class Reloading(Running):
    def __init__(self, directory: Path, *options: str) -> None:
        super().__init__(directory, *options)
        self.etc = directory / "etc"
        self.port = int(self.await_line(r"acceptor 'stomp' listens on 127\.0\.0\.1:(\d+)"))
        self.url = self.await_line(r"HTTP interface listens on (\S+)")
        self.await_line("(DMQ7010)")

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.etc / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def reload(self) -> list[str]:
        """What the log says of one SIGHUP."""
        before = len(self.lines)
        self.process.send_signal(signal.SIGHUP)
        with self._said:

            def told() -> bool:
                return any(re.search("DMQ701[23]:", line) for line in self.lines[before:])

            assert self._said.wait_for(told, 60), self.lines
            return self.lines[before:]

    def stat(self, *words: str) -> str:
        done = call("queue", "stat", "--url", self.url, *words, DELOSMQ_PASSWORD=PASSWORD)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def broker(instance: Path) -> Iterator[Reloading]:
    running = Reloading(instance)
    yield running
    end(running)


def said(lines: list[str], pattern: str) -> bool:
    return any(re.search(pattern, line) for line in lines)


def test_what_did_not_change_is_said_and_nothing_ends(broker: Reloading) -> None:
    peer = Peer(broker.port, "admin", PASSWORD)
    assert said(broker.reload(), "DMQ7012: .* was read again; changed: nothing")
    assert peer.send("orders").startswith("RECEIPT")
    peer.close()


def test_users_and_roles_are_taken_over(broker: Reloading) -> None:
    masked = call("mask", text="tea\n").stdout.strip()
    with (broker.etc / "artemis-users.properties").open("a") as file:
        file.write(f"clerk = {masked}\n")
    broker.edit("artemis-roles.properties", "amq = admin", "amq = admin,clerk")
    stranger = Peer(broker.port, "clerk", "tea")
    assert stranger.login.startswith("ERROR")
    stranger.close()
    assert said(broker.reload(), "changed: artemis-users.properties, artemis-roles.properties")
    clerk = Peer(broker.port, "clerk", "tea")
    assert clerk.send("orders").startswith("RECEIPT")
    broker.edit("artemis-roles.properties", "amq = admin,clerk", "amq = admin")
    broker.reload()
    assert "DMQ1001" in clerk.send("orders")  # though it was connected, and had sent there
    clerk.close()


def test_a_user_who_is_removed_is_refused_on_open_connections_and_keeps_subscriptions(broker: Reloading) -> None:
    masked = call("mask", text="tea\n").stdout.strip()
    line = f"clerk = {masked}\n"
    with (broker.etc / "artemis-users.properties").open("a") as file:
        file.write(line)
    broker.edit("artemis-roles.properties", "amq = admin", "amq = admin,clerk")
    assert not said(broker.reload(), "DMQ7020")
    reader, sender = Peer(broker.port, "clerk", "tea"), Peer(broker.port, "clerk", "tea")
    admin = Peer(broker.port, "admin", PASSWORD)
    assert sender.send("orders").startswith("RECEIPT")
    assert reader.ask("SUBSCRIBE\nid:1\ndestination:/queue/orders\nack:client\n\n").startswith("MESSAGE")
    broker.edit("artemis-users.properties", line, "")
    assert said(broker.reload(), r"DMQ7020: not in artemis-users.properties any more: clerk\. Their open connections")
    assert "DMQ1001" in sender.send("orders")
    assert admin.send("orders").startswith("RECEIPT")
    assert reader.next().startswith("MESSAGE")
    again = Peer(broker.port, "clerk", "tea")
    assert again.login.startswith("ERROR")
    for peer in (reader, sender, admin, again):
        peer.close()


def test_permissions_are_taken_over_by_open_connections(broker: Reloading) -> None:
    peer = Peer(broker.port, "admin", PASSWORD)
    assert peer.send("orders").startswith("RECEIPT")
    broker.edit("broker.xml", '<permission type="send" roles="amq"/>', '<permission type="send" roles="senders"/>')
    assert said(broker.reload(), "changed: security-settings")
    assert "lacks the permission 'send'" in peer.send("orders")
    peer.close()


def test_address_settings_count_for_addresses_that_exist(broker: Reloading) -> None:
    peer = Peer(broker.port, "admin", PASSWORD)
    assert peer.send("orders").startswith("RECEIPT")
    broker.edit(
        "broker.xml",
        "<redelivery-delay>0</redelivery-delay>",
        "<redelivery-delay>0</redelivery-delay><max-size-messages>1</max-size-messages>",
    )
    broker.edit("broker.xml", "<address-full-policy>BLOCK<", "<address-full-policy>FAIL<")
    assert said(broker.reload(), "changed: address-settings")
    assert peer.send("orders").startswith("ERROR")
    peer.close()


def test_queues_are_made_and_changed_and_never_deleted(broker: Reloading) -> None:
    queue = '<address name="tea"><anycast><queue name="tea" max-consumers="3"/></anycast></address>'
    broker.edit("broker.xml", "<addresses>", f"<addresses>{queue}")
    assert said(broker.reload(), "changed: addresses, queues")
    assert "tea" in broker.stat("--filter", "tea")
    done = call("queue", "pause", "tea", "--url", broker.url, DELOSMQ_PASSWORD=PASSWORD)
    assert done.returncode == 0
    broker.edit("broker.xml", 'max-consumers="3"', 'ring-size="7"')
    broker.reload()
    assert re.search(r"tea .*\b7\b", broker.stat("--filter", "tea"))
    assert "PAUSED" in broker.stat("--filter", "tea")  # what an operator did stays
    broker.edit("broker.xml", queue.replace('max-consumers="3"', 'ring-size="7"'), "")
    assert said(broker.reload(), "DMQ6152: .*queue 'tea', address 'tea'")
    assert "tea" in broker.stat("--filter", "tea")


def test_a_queue_that_cannot_be_as_wanted_is_named_and_the_rest_counts(broker: Reloading) -> None:
    first = '<address name="a"><anycast><queue name="q"/></anycast></address>'
    broker.edit("broker.xml", "<addresses>", f"<addresses>{first}")
    broker.reload()
    broker.edit("broker.xml", first, first.replace('name="a"', 'name="b"') + first.replace('"q"', '"r"'))
    lines = broker.reload()
    assert said(lines, "DMQ6150: .*queue 'q' stays as it is: DMQ2106")
    assert re.search("^r ", broker.stat(), re.MULTILINE)


def test_what_waits_for_a_restart_is_named(broker: Reloading) -> None:
    broker.edit("broker.xml", "<journal-file-size>64M", "<journal-file-size>32M")
    broker.edit("broker.xml", "anycastPrefix=/queue/", "anycastPrefix=/q/")
    broker.edit(
        "broker.xml", "<redelivery-delay>", "<default-non-destructive>true</default-non-destructive><redelivery-delay>"
    )
    broker.edit("bootstrap.xml", "127.0.0.1", "localhost")
    lines = broker.reload()
    assert said(lines, "DMQ6151: .*default-non-destructive of address-setting '#'; journal-file-size; acceptors")
    assert said(lines, "DMQ7014: .*bootstrap.xml")
    again = broker.reload()
    assert said(again, "DMQ6151")  # still so


def test_a_broken_file_is_refused_with_its_line_and_the_old_stays(broker: Reloading) -> None:
    peer = Peer(broker.port, "admin", PASSWORD)
    text = (broker.etc / "broker.xml").read_text()
    line = text.split("\n").index("            <max-delivery-attempts>10</max-delivery-attempts>") + 1
    broker.edit("broker.xml", "<max-delivery-attempts>10", "<max-delivery-attempts>ten")
    broker.edit("artemis-roles.properties", "amq = admin", "amq = somebody")
    lines = broker.reload()
    assert said(lines, "DMQ7013: nothing was reloaded, and what was in force stays")
    assert said(lines, rf"broker\.xml:{line}: ") or said(broker.lines, rf"broker\.xml:{line}: ")
    assert peer.send("orders").startswith("RECEIPT")
    peer.close()
    (broker.etc / "broker.xml").write_text(text)
    assert said(broker.reload(), "DMQ7012: .*changed: artemis-roles.properties")


def test_each_mistake_of_a_broken_file_has_a_line(broker: Reloading) -> None:
    text = (broker.etc / "broker.xml").read_text()
    names = [f"mistake-{number}" for number in range(18)]
    broker.edit("broker.xml", "</core>", "".join(f"<{name}>1</{name}>" for name in names) + "</core>")
    broker.reload()
    (broker.etc / "broker.xml").write_text(text)
    broker.reload()
    broker.await_line("(DMQ7012)")
    told = [line.rstrip() for line in broker.lines if "DMQ7013" in line]
    assert told[0].endswith("has 18 mistakes; correct them:")
    assert len(told) == 19
    assert all(f"<{name}>" in line for name, line in zip(names, told[1:], strict=True))
    assert not any("more characters" in line or "\\n" in line for line in broker.lines)


def test_what_is_left_out_is_taken_over(instance: Path) -> None:
    path = instance / "etc/broker.xml"
    text = path.read_text()
    path.write_text(text.replace("<name>", "<federations/><name>"))
    broker = Reloading(instance, "--without", "federations")
    path.write_text(text)
    lines = broker.reload()
    assert said(lines, "DMQ7012: .*changed: names that --without leaves out")
    assert not said(lines, "DMQ6151|left-out")
    path.write_text(text.replace("<name>", "<federations/><name>"))
    assert said(broker.reload(), "DMQ4115: broker '.*' runs without federations")
    end(broker)


async def test_a_reload_that_fails_half_way_does_not_say_that_nothing_was_reloaded(instance: Path) -> None:
    read = load_instance(instance, properties={}, without=frozenset())
    told: list[str] = []
    logger = logging.Logger("test")
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)

    class Half:
        def reload(self, *_: object) -> None:
            raise StorageError("DMQ3001", "the disk is gone")

    reloads = Reloads(read, cast(ComposedBroker, Half()), logger, lambda: read)
    reloads.ask()
    (task,) = (task for task in asyncio.all_tasks() if task.get_name() == "delosmq reload")
    await task
    (line,) = [line for line in told if "DMQ701" in line]
    assert line.startswith("DMQ7017: the reload failed half-way")
    assert "the disk is gone" in line


def test_sighup_while_it_starts_and_stops_does_not_end_it(instance: Path) -> None:
    running = Running(instance)
    running.await_line("(DMQ6012)")  # it recovers, and is not up yet
    for _ in range(50):
        running.process.send_signal(signal.SIGHUP)
    running.await_line("(DMQ7010)")
    running.process.terminate()
    for _ in range(50):
        running.process.send_signal(signal.SIGHUP)
    end(running)
