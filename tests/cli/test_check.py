"""``delosmq check`` and ``delosmq run --without``: all that is to be said of a configuration, and a start anyhow."""

# BROKER-3

import asyncio
import io
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from delosmq.cli import run
from delosmq.cli.check import check_command
from delosmq.config.broker_xml import load_broker_xml, names_that_stop
from delosmq.config.configuration_check import check_configuration
from delosmq.config.findings import FindingKind, FlawedFileError
from delosmq.config.instance import create_instance, load_instance, read_without
from delosmq.model.errors import ConfigurationError
from tools.broker_xml_survey import survey

HEAD = '<configuration xmlns="urn:activemq">\n<core xmlns="urn:activemq:core">\n'
TAIL = "\n</core>\n</configuration>\n"
CLUSTERED = "<federations/>\n<cluster-connections/>\n<journal-type>NIO</journal-type>"


def write(path: Path, core: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + core + TAIL, encoding="utf-8")
    return path


def check(path: Path, *without: str) -> tuple[int, list[str]]:
    """Exit code and lines, the path taken off them."""
    out = io.StringIO()
    code = check_command(path, properties={}, without=without, file=out)
    return code, [line.removeprefix(str(path)) for line in out.getvalue().splitlines()]


def test_a_new_instance_has_nothing_to_be_said(tmp_path: Path) -> None:
    create_instance(tmp_path / "broker")
    assert check(tmp_path / "broker") == (0, [": nothing to say; a broker starts with it"])


def test_everything_is_listed_at_once_with_its_line(tmp_path: Path) -> None:
    create_instance(tmp_path)
    etc = tmp_path / "etc"
    write(
        etc / "broker.xml", f"<jurnal/>\n{CLUSTERED}\n<name>${{nowhere}}</name>\n<global-max-size>x</global-max-size>"
    )
    (etc / "bootstrap.xml").write_text(
        '<broker xmlns="http://activemq.apache.org/schema">\n<security-manager/>\n'
        '<web bind="ftp://x" path="p"/>\n</broker>'
    )
    (etc / "artemis-users.properties").write_text("a = plain\n\\u12 = b\n")
    (etc / "artemis-roles.properties").write_text("amq = a\namq = b\n")
    code, lines = check(tmp_path)
    assert code == 1
    assert [line.split(": ")[:3] for line in lines[:-1]] == [
        ["/etc/broker.xml:3", "mistake", "DMQ4004"],
        ["/etc/broker.xml:4", "unsupported", "DMQ4006"],
        ["/etc/broker.xml:5", "unsupported", "DMQ4006"],
        ["/etc/broker.xml:6", "ignored", "DMQ4101"],
        ["/etc/broker.xml:7", "mistake", "DMQ4009"],
        ["/etc/broker.xml:8", "mistake", "DMQ4005"],
        ["/etc/bootstrap.xml:2", "unsupported", "DMQ4006"],
        ["/etc/bootstrap.xml:3", "ignored", "DMQ4101"],
        ["/etc/bootstrap.xml:3", "mistake", "DMQ4005"],
        ["/etc/artemis-users.properties:1", "mistake", "DMQ4020"],
        ["/etc/artemis-users.properties:2", "mistake", "DMQ4010"],
        ["/etc/artemis-roles.properties:2", "mistake", "DMQ4008"],
    ]
    assert lines[-1] == (
        ": 7 mistakes, 3 unsupported names, 2 ignored names; correct the mistakes, and a broker starts with "
        "--without cluster-connections,federations,security-manager"
    )


def test_what_is_not_supported_can_be_left_out_and_is_named_as_such(tmp_path: Path) -> None:
    path = write(tmp_path / "broker.xml", CLUSTERED)
    code, lines = check(path)
    assert code == 1
    assert lines[-1].endswith("no broker starts with it, but one does with --without cluster-connections,federations")
    code, lines = check(path, "federations,cluster-connections")
    assert code == 0
    assert lines[-1].endswith("; a broker starts with it")
    assert [line.split(": ")[1] for line in lines if ": left out: " in line] == ["left out"] * 2


@pytest.mark.parametrize(
    ("core", "name"),
    [
        (
            '<acceptors>\n<acceptor name="a">tcp://127.0.0.1:0?protocols=STOMP;crlPath=r</acceptor></acceptors>',
            "crlPath",
        ),
        (
            '<diverts><divert name="d"><address>a</address><forwarding-address>b</forwarding-address>\n'
            "<transformer-class-name>a.B</transformer-class-name></divert></diverts>",
            "transformer",
        ),
        (
            '<address-settings><address-setting match="a">\n<slow-consumer-policy>KILL</slow-consumer-policy>'
            "</address-setting></address-settings>",
            "slow-consumer-policy",
        ),
        (
            "<store><database-store>\n<data-source-class-name>x</data-source-class-name><jdbc-connection-url>"
            "jdbc:postgresql:db</jdbc-connection-url></database-store></store>",
            "data-source-class-name",
        ),
    ],
)
def test_names_of_every_place_can_be_left_out(tmp_path: Path, core: str, name: str) -> None:
    path = write(tmp_path / "broker.xml", core)
    with pytest.raises(FlawedFileError) as caught:
        load_broker_xml(path, properties={})
    assert [finding.name for finding in caught.value.findings.found if finding.kind is FindingKind.UNSUPPORTED] == [
        name
    ]
    loaded = load_broker_xml(path, properties={}, without=read_without([name]))
    assert loaded.settings.left_out == (name,)
    (left_out,) = (finding for finding in loaded.findings.found if finding.kind is FindingKind.LEFT_OUT)
    assert left_out.line == 4


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(
        ConfigurationError, match=r"--without cluster-conections: .*; did you mean 'cluster-connections'?"
    ):
        read_without(["federations,cluster-conections"])
    with pytest.raises(ConfigurationError, match="`delosmq check` lists"):
        read_without(["zzzzzzzz"])
    # What is in effect, or ignored anyway, stops no start.
    with pytest.raises(ConfigurationError, match="no such name stops a start"):
        read_without(["journal-type"])
    assert "security-settings" not in names_that_stop()


def test_a_mistake_is_not_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "broker.xml", f"{CLUSTERED}<zzz/>")
    assert not check_configuration(
        path, properties={}, without=frozenset({"federations", "cluster-connections"})
    ).starts


def test_an_instance_knows_what_it_starts_without(tmp_path: Path) -> None:
    create_instance(tmp_path)
    path = tmp_path / "etc/broker.xml"
    path.write_text(path.read_text().replace("<name>", "<federations/><name>"))
    without = frozenset({"federations", "security-manager"})
    assert load_instance(tmp_path, properties={}, without=without).settings.left_out == ("federations",)


def test_a_directory_that_is_no_instance_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"DMQ4030: .* is no instance directory"):
        check(tmp_path)


def test_the_command_ends_with_its_exit_code(tmp_path: Path) -> None:
    path = write(tmp_path / "broker.xml", "<name>${who}</name>\n<federations/>")

    def call(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "delosmq.cli.main", "check", str(path), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert call("--define", "who=me").returncode == 1
    assert call("--define", "who=me", "--without", "federations").returncode == 0
    wrong = call("--without", "federatons")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "did you mean 'federations'?" in wrong.stderr


async def test_the_log_repeats_what_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_instance(tmp_path)
    path = tmp_path / "etc/broker.xml"
    path.write_text(path.read_text().replace("<name>", "<federations/><name>"))
    instance = load_instance(tmp_path, properties={}, without=frozenset({"federations"}))
    monkeypatch.setattr(run, "REMIND_EVERY_S", 0.0)
    said: asyncio.Queue[str] = asyncio.Queue()

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.put_nowait(record.getMessage())

    logger = logging.Logger("test")
    logger.addHandler(Heard())
    reminding = asyncio.create_task(run.keep_reminding(lambda: instance, logger))
    for _ in range(2):
        assert (await said.get()).startswith("DMQ4115: broker 'delosmq' runs without federations, as --without says")
    instance = replace(instance, settings=replace(instance.settings, left_out=("jmx",)))  # a reload
    while "runs without jmx" not in await said.get():
        pass
    reminding.cancel()


def test_a_survey_counts_what_starts_and_what_stops_the_rest(tmp_path: Path) -> None:
    write(tmp_path / "a/broker.xml", "")
    write(tmp_path / "b/broker.xml", "<federations/>")
    write(tmp_path / "c/d/broker-c.xml", "<federations/><zzz/>")
    found = survey(tmp_path)
    assert (found.files, found.starting) == (3, 1)
    assert found.without == {"federations": 1}
    assert found.stopping == {"DMQ4004: unknown element <zzz> in <core>; remove it": 1}


def test_the_journal_of_an_artemis_broker_is_told(tmp_path: Path) -> None:
    create_instance(tmp_path)
    journal = tmp_path / "data" / "journal"
    journal.mkdir(parents=True, exist_ok=True)
    for number in (1, 2, 10):
        (journal / f"activemq-data-{number}.amq").write_bytes(b"x")
    (journal / "server.lock").write_bytes(b"")
    code, (said, _) = check(tmp_path)
    assert code == 0
    assert "notice: DMQ4113" in said
    assert "activemq-data-1.amq to activemq-data-10.amq (3 files); DelosMQ does not read it" in said
    assert any("DMQ4113" in notice for notice in load_instance(tmp_path).notices)


def test_an_activemq_xml_is_named_as_such_with_what_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "activemq.xml"
    path.write_text(
        '<beans xmlns="http://www.springframework.org/schema/beans">\n'
        '<broker xmlns="http://activemq.apache.org/schema/core"/></beans>'
    )
    code, lines = check(path)
    assert code == 1
    assert (
        f"this is an activemq.xml of ActiveMQ Classic; make an instance of it with delosmq convert {path}" in lines[0]
    )
    path.write_text('<broker xmlns="http://activemq.apache.org/schema/core"/>')
    assert f"delosmq convert {path}" in check(path)[1][0]


def test_what_is_not_there_is_no_mistake_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"DMQ4030: there is no instance directory .*nosuch; .*delosmq create"):
        check(tmp_path / "nosuch")
    with pytest.raises(ConfigurationError, match=r"DMQ4030: there is no broker\.xml .*nosuch\.xml; "):
        check(tmp_path / "nosuch.xml")
    with pytest.raises(ConfigurationError, match=r"DMQ4030: there is no directory .*nosuch; .*delosmq create"):
        load_instance(tmp_path / "nosuch", properties={})


def test_every_unknown_placeholder_of_a_line_is_named_once(tmp_path: Path) -> None:
    path = write(
        tmp_path / "broker.xml",
        '<acceptors><acceptor name="${one}">tcp://${two}:${three}?x=${two}</acceptor></acceptors>',
    )
    code, lines = check(path)
    assert code == 1
    named = [line.split("${")[1].partition("}")[0] for line in lines if "DMQ4009" in line]
    assert named == ["one", "two", "three"]
    assert lines[-1].startswith(": 3 mistakes")


def test_a_name_far_from_all_is_told_no_other(tmp_path: Path) -> None:
    for written in ("nonsense", "federations cluster-connections"):
        with pytest.raises(ConfigurationError, match="several are separated by commas") as refused:
            read_without([written])
        assert "did you mean" not in str(refused.value)
