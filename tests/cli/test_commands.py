"""The command line, as a user calls it: create, run, queue stat, mask."""

# BROKER-5

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from delosmq.cli.create import create_command
from tests.cli.processes import COMMAND, PASSWORD, Running, call, started


@pytest.fixture
def running(instance: Path) -> Iterator[Running]:
    with started(instance) as broker:
        yield broker


def test_create_shows_a_random_password_once(tmp_path: Path) -> None:
    made = call("create", str(tmp_path / "i"))
    assert made.returncode == 0
    shown = re.search(r"password +(\S+)", made.stdout)
    assert shown is not None
    stored = (tmp_path / "i" / "etc" / "artemis-users.properties").read_text(encoding="utf-8")
    assert shown[1] not in stored
    assert "argon2id" in stored


def test_create_refuses_a_directory_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    made = call("create", str(tmp_path))
    assert made.returncode == 1
    assert made.stderr.startswith("DMQ4035")
    assert len(made.stderr.strip().splitlines()) == 1


def test_queue_stat_lists_what_run_serves_and_sigterm_ends_it_well(running: Running, tmp_path: Path) -> None:
    url = running.await_line(r"HTTP interface listens on (\S+)")
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n", encoding="utf-8")
    listed = call("queue", "stat", "--url", url, "--password-file", str(secret))
    assert listed.returncode == 0, listed.stderr
    assert re.search(r"^DLQ +DLQ +ANYCAST", listed.stdout, re.MULTILINE)
    wrong = call("queue", "stat", "--url", url, DELOSMQ_PASSWORD="wrong")
    assert wrong.returncode == 1
    assert "401" in wrong.stderr
    none = {name: value for name, value in os.environ.items() if name != "DELOSMQ_PASSWORD"}
    missing = subprocess.run([*COMMAND, "queue", "stat"], capture_output=True, text=True, env=none, check=False)
    assert missing.stderr.startswith("DMQ7002")
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(60) == 0
    running.await_line(r"DMQ7011: (broker)")


def test_a_broker_that_leaves_names_out_says_so_in_its_log_and_in_its_health(instance: Path) -> None:
    path = instance / "etc" / "broker.xml"
    path.write_text(path.read_text().replace("<name>", "<federations/><cluster-connections/><name>"))
    refused = call("run", str(instance))
    assert refused.returncode == 1
    assert "DMQ4000" in refused.stderr
    unknown = call("run", str(instance), "--without", "federatons")
    assert unknown.returncode == 2
    assert "did you mean 'federations'?" in unknown.stderr
    with started(instance, "--without", "federations", "--without", "cluster-connections") as broker:
        broker.await_line(r"WARNING DMQ4115: broker 'delosmq' runs without (federations, cluster-connections), as")
        url = broker.await_line(r"HTTP interface listens on (\S+)")
        with urllib.request.urlopen(f"{url}/health/ready") as answer:
            health = json.load(answer)
    assert health["status"] == "UP"
    assert health["detail"] == "DMQ4115: runs without federations, cluster-connections, as --without says"


def test_a_second_broker_on_the_same_instance_is_refused(running: Running, instance: Path) -> None:
    second = call("run", str(instance))
    assert second.returncode == 1
    assert f"in use by the broker with process id {running.process.pid}" in second.stderr


@pytest.mark.parametrize("owner_path", ["data/journal", "link"])
def test_a_second_instance_on_the_same_journal_is_refused(
    running: Running, instance: Path, tmp_path: Path, owner_path: str
) -> None:
    (instance / "link").symlink_to(instance / "data" / "journal")
    other = tmp_path / "other"
    ports = ("--stomp-port", "0", "--openwire-port", "0", "--http-port", "0")
    assert call("create", str(other), "--password-stdin", *ports, text=PASSWORD + "\n").returncode == 0
    configuration = other / "etc" / "broker.xml"
    journal = f"<journal-directory>{instance / owner_path}<"
    configuration.write_text(
        re.sub("<journal-directory>[^<]*<", journal, configuration.read_text(encoding="utf-8")), encoding="utf-8"
    )
    assert journal in configuration.read_text(encoding="utf-8")
    refused = call("run", str(other))
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        f"DMQ4031: {instance / owner_path} is in use by the broker with process id {running.process.pid}; stop that one"
        " first, or give this one a directory of its own"
    )


def test_a_journal_may_lie_right_in_data(instance: Path) -> None:
    configuration = instance / "etc" / "broker.xml"
    text = re.sub("<journal-directory>[^<]*<", "<journal-directory>data<", configuration.read_text(encoding="utf-8"))
    configuration.write_text(text, encoding="utf-8")
    broker = Running(instance)
    try:
        broker.await_line(r"DMQ7010: (broker)")
        broker.process.terminate()
        assert broker.process.wait(60) == 0
    finally:
        broker.end()


def test_run_refuses_what_is_no_instance_and_a_broken_configuration(tmp_path: Path, instance: Path) -> None:
    nothing = call("run", str(tmp_path))
    assert nothing.returncode == 1
    assert "delosmq create" in nothing.stderr
    broker_xml = instance / "etc" / "broker.xml"
    text = broker_xml.read_text(encoding="utf-8")
    broker_xml.write_text(text.replace("<dead-letter-address>", "<dead-leter-address>", 1), encoding="utf-8")
    broken = call("run", str(instance))
    assert broken.returncode == 1
    assert "broker.xml:" in broken.stderr
    assert "Traceback" not in broken.stderr


def test_a_refused_start_names_what_can_be_left_out(instance: Path) -> None:
    broker_xml = instance / "etc" / "broker.xml"
    text = broker_xml.read_text(encoding="utf-8")
    broker_xml.write_text(text.replace("<name>", "<federations/><cluster-connections/><bridges/><name>"), "utf-8")
    refused = call("run", str(instance), "--without", "bridges")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        "--without bridges,cluster-connections,federations leaves out what is not supported; "
        f"`delosmq check {instance}` lists everything"
    )


def test_queue_stat_says_when_nobody_listens() -> None:
    refused = call("queue", "stat", "--url", "http://127.0.0.1:9", DELOSMQ_PASSWORD="x")
    assert refused.returncode == 1
    assert refused.stderr.startswith("DMQ7005")


@pytest.mark.parametrize("drain", ["inf", "1e400", "nan", "-1", "86401", "soon"])
def test_a_time_to_finish_in_that_is_none_is_refused_at_the_start(instance: Path, drain: str) -> None:
    refused = call("run", str(instance), f"--drain={drain}")
    assert refused.returncode == 2
    assert f"argument --drain: '{drain}' is no number of seconds from 0 to 86400" in refused.stderr


def test_a_define_without_a_value_is_refused(instance: Path) -> None:
    refused = call("run", str(instance), "--define", "port")
    assert refused.returncode == 2
    assert "NAME=VALUE" in refused.stderr


def test_mask_prints_the_stored_form() -> None:
    masked = call("mask", text="secret\n")
    assert masked.stdout.startswith("$argon2id$")
    assert json.dumps(masked.stdout).count("secret") == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--version",), 0, "0."),
        (("queue", "sta"), 2, "No such command 'sta'"),
        (("create",), 2, "Missing argument"),
        (("create", "/nowhere/x", "--stomp-port", "71613"), 2, "the port 71613 is none"),
        (("create", "/nowhere/x", "--host", "999.1.2.3"), 2, "the host '999.1.2.3' is neither a host name nor"),
        (("check", "/nowhere/x"), 1, "DMQ4030: there is no instance directory /nowhere/x"),
        (("create", "/nowhere/x", "--stomp-port", "8161"), 2, "for STOMP and for HTTP; give each a port of its own"),
        (("create", "/nowhere/x", "--openwire-port", "61613"), 2, "for STOMP and for OpenWire; give each a port"),
        (("convert", "/nowhere.xml", "--define", "x"), 2, "DMQ4142"),
        (("run", "/nowhere", "--define", "x"), 2, "DMQ7001"),
        (("spark", "archive", "--to", "somewhere"), 2, "DMQ7301: name what to archive: --queue or --topic"),
    ],
)
def test_exit_codes_say_how_it_ended(arguments: tuple[str, ...], code: int, says: str) -> None:
    ended = call(*arguments)
    assert ended.returncode == code
    assert says in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


def test_create_warns_of_a_host_that_is_not_known_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(host: str, *_: object, **__: object) -> NoReturn:
        assert host == "broker.example"
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("delosmq.cli.create.socket.getaddrinfo", unknown)
    create_command(tmp_path / "i", host="broker.example")
    told = capsys.readouterr()
    assert "broker.example:61613" in told.out
    assert told.err.startswith(
        "DMQ7019: this machine does not know the host 'broker.example' (Name or service not known)"
    )
    assert str(tmp_path / "i" / "etc" / "broker.xml") in told.err


def test_create_does_not_wait_for_name_servers_that_do_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = threading.Event()
    monkeypatch.setattr("delosmq.cli.create.socket.getaddrinfo", lambda *_, **__: ended.wait())
    monkeypatch.setattr("delosmq.cli.create.NAME_WAIT_S", 0.01)
    try:
        create_command(tmp_path / "i", host="broker.example")
    finally:
        ended.set()
    assert capsys.readouterr().err.startswith(
        "DMQ7019: this machine does not know the host 'broker.example' (its name servers have not answered for 0.01 s)"
    )


INTERRUPTED = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == last:
            os.kill(os.getpid(), signal.SIGINT)

_, last, *arguments = sys.argv
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from delosmq.cli.main import app_main
sys.argv = ["delosmq", *arguments]
app_main()
"""
"""Calls a command, with Ctrl-C when it begins to load a module."""


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("delosmq.cli.run", "run"),
        ("delosmq.composition", "run"),
        ("delosmq.server.listener", "run"),
        ("delosmq.storage.journal.store", "run"),
        ("delosmq.cli.app", "queue"),
        ("delosmq.cli.spark.app", "queue"),
    ],
)
def test_ctrl_c_while_a_command_loads_leaves_no_trace(instance: Path, module: str, command: str) -> None:
    arguments = ["run", str(instance)] if command == "run" else [command, "stat"]
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_names_are_printed_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "of:tea:[red]").mkdir()
    (tmp_path / "of:tea:[red]" / "file").touch()
    refused = call("create", str(tmp_path / "of:tea:[red]"))
    assert "of:tea:[red]" in refused.stderr
