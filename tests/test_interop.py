"""The comparison behind `make interop`: what counts as equal, and what fails a run."""

import argparse
import re
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from interop.__main__ import Ways, main
from interop.brokers import NewestClassic
from interop.compare import Difference, Verdict, compare, read_differences
from interop.java import SHARED, SOURCES, Client, sources, version_in
from interop.maven import BROKER, NEWEST, SPARK_KAFKA, fetched
from interop.missing import Missing
from interop.openwire.record import Tap
from interop.programs import PROGRAMS, Outcome, normalised


def outcome(**cases: list[str]) -> Outcome:
    return Outcome(dict(cases))


def test_equal_lines_are_equal():
    comparison = compare("p", outcome(a=["x", "y"]), outcome(a=["x", "y"]), [])
    assert comparison.verdicts == {"a": Verdict.EQUAL}


def test_notes_are_not_compared():
    comparison = compare("p", outcome(a=["x", "~ its words"]), outcome(a=["x", "~ our words"]), [])
    assert comparison.verdicts == {"a": Verdict.EQUAL}


def test_a_difference_is_shown_line_by_line():
    comparison = compare("p", outcome(a=["x", "y"]), outcome(a=["x", "z"]), [])
    assert comparison.verdicts == {"a": Verdict.DIFFERENT}
    assert comparison.details["a"] == [" x", "-y", "+z"]


@pytest.mark.parametrize("expected, seen", [(outcome(a=["x"]), outcome()), (outcome(), outcome(a=["x"]))])
def test_a_case_that_ran_on_one_broker_only_is_different(expected: Outcome, seen: Outcome):
    assert compare("p", expected, seen, []).verdicts == {"a": Verdict.DIFFERENT}


def test_a_difference_on_purpose_is_used_where_something_differs_only():
    listed = [Difference("p", "a*", "why"), Difference("p", "same", "why"), Difference("other", "*", "why")]
    comparison = compare("p", outcome(ab=["x"], same=["x"]), outcome(ab=["y"], same=["x"]), listed)
    assert comparison.verdicts == {"ab": Verdict.INTENDED, "same": Verdict.EQUAL}
    assert [difference.used for difference in listed] == [True, False, False]


def test_the_list_of_differences(tmp_path: Path):
    path = tmp_path / "differences.txt"
    path.write_text("# words\n\nselectors | takes a | b | because of c\n")
    assert read_differences(path) == [Difference("selectors", "takes a | b", "because of c")]
    path.write_text("selectors | takes a\n")
    with pytest.raises(ValueError, match=r"differences\.txt:1"):
        read_differences(path)


@pytest.mark.parametrize(
    "line, same",
    [
        ("from ID:some-host.example-34567-1700000000000-1:22:1:1:9 on", "from ID:* on"),
        ("tcp://127.0.0.1:41234", "tcp://HOST:PORT"),
        ("Message Expired. Expiration:1795250346346", "Message Expired. Expiration:*"),
        ("m1 #2 redelivered", "m1 #2 redelivered"),
    ],
)
def test_only_what_no_two_runs_share_is_replaced(line: str, same: str):
    assert normalised(line) == same


def test_the_tap_passes_frames_on_and_notes_them():
    request, answer = bytes([0, 0, 0, 2, 10, 7]), bytes([0, 0, 0, 1, 30])
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    assert connection.recv(len(request), socket.MSG_WAITALL) == request
                    connection.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        tap = Tap(listener.getsockname()[1])
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", tap.port)) as client:
                client.sendall(request)
                assert client.makefile("rb").read() == answer
                client.shutdown(socket.SHUT_WR)
        server.join()
        tap.close()
    # Whether the first is noted as gone before the second begins depends on threads; at the end it is left out.
    lines = [line for line in tap.take() if line != "# connection 1 is gone"]
    frames = ["> 00000002" + "0a07", "< 00000001" + "1e"]
    assert lines == ["# connection 1", *frames, "# connection 2", *frames]
    assert tap.take() == []


def test_a_client_that_implements_jakarta_gets_the_programs_in_its_names(tmp_path: Path):
    old, new = tmp_path / "geronimo-jms_1.1_spec.jar", tmp_path / "jakarta.jms-api-3.1.0.jar"
    assert sources([old]) == SOURCES
    translated = sources([old, new], tmp_path / "translated")
    text = (translated / "Stage.java").read_text("utf-8")
    assert "import jakarta.jms.Connection;" in text
    assert "javax.jms" not in text
    # That of transactions is part of Java itself.
    assert "import javax.transaction.xa.XAResource;" in (translated / "XaTransactions.java").read_text("utf-8")
    assert sorted(path.name for path in translated.iterdir()) == sorted(path.name for path in SOURCES.glob("*.java"))


def test_what_programs_of_all_clients_share_needs_no_translation():
    shared = [path.read_text("utf-8") for path in SHARED.glob("*.java")]
    assert shared
    assert not [text for text in shared if "javax.jms" in text]


@pytest.mark.parametrize("jar", ["", "activemq-client.jar", "activemq-broker-6.3.1.jar"])
def test_a_folder_without_the_client_is_named(tmp_path: Path, jar: str):
    if jar:
        (tmp_path / jar).touch()
    with pytest.raises(Missing, match=re.escape(str(tmp_path))):
        version_in(tmp_path)
    (tmp_path / "activemq-client-6.3.1.jar").touch()
    assert version_in(tmp_path) == "6.3.1"


class TestMaven:
    """A script stands in for Maven, so that nothing is fetched."""

    def maven(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
        tools = tmp_path / "bin"
        tools.mkdir()
        (tools / "mvn").write_text(f"#!/bin/sh\n{script}\n")
        (tools / "mvn").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")

    def test_the_newest_is_looked_for_each_time(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        self.maven(tmp_path, monkeypatch, f"echo run >> {tmp_path}/runs; touch activemq-client-6.3.1.jar")
        for _ in range(2):
            assert version_in(fetched(NEWEST, tmp_path)) == "6.3.1"
        assert (tmp_path / "runs").read_text() == "run\nrun\n"
        assert "<version>[6.0.0,7)</version>" in (tmp_path / "client-newest" / "pom.xml").read_text()

    def test_the_broker_is_fetched_with_what_reads_its_configuration(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        self.maven(tmp_path, monkeypatch, "touch activemq-broker-6.3.1.jar")
        assert NewestClassic.version_of(fetched(NEWEST, tmp_path, BROKER)) == "6.3.1"
        pom = (tmp_path / "broker-newest" / "pom.xml").read_text()
        assert pom.count("<artifactId>activemq-") == 4
        assert "<artifactId>spring-context</artifactId>" in pom

    def test_what_is_there_already_is_left_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        self.maven(tmp_path, monkeypatch, "echo $@ > words; touch spark-sql-kafka-0-10_2.13-4.2.0.jar")
        folder = fetched("4.2.0", tmp_path, SPARK_KAFKA)
        pom = (folder / "pom.xml").read_text()
        assert "<groupId>org.apache.spark</groupId>" in pom
        assert "<exclusion><groupId>org.apache.hadoop</groupId><artifactId>*</artifactId></exclusion>" in pom
        assert "--strict-checksums" in (folder / "words").read_text()

    def test_a_version_is_fetched_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        self.maven(tmp_path, monkeypatch, f"echo run >> {tmp_path}/runs; touch activemq-client-5.18.3.jar")
        for _ in range(2):
            assert version_in(fetched("5.18.3", tmp_path)) == "5.18.3"
        assert (tmp_path / "runs").read_text() == "run\n"

    def test_without_a_network_it_says_what_maven_said(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        self.maven(tmp_path, monkeypatch, "echo Unknown host; exit 1")
        with pytest.raises(Missing, match="Maven said: Unknown host"):
            fetched(NEWEST, tmp_path)

    def test_without_maven_it_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(Missing, match="no mvn"):
            fetched(NEWEST, tmp_path)

    def test_a_version_is_a_version(self, tmp_path: Path):
        with pytest.raises(Missing, match="no version of the client"):
            fetched("../6.0", tmp_path)


CLASSIC = ["debian", "newest", "newest broker"]
BY_CORE = ["Artemis 2.44.0", "Artemis 2.6.4", "Artemis 2.28.0"]


class Runs:
    """A whole run without brokers, Java or network: it knows which clients were compared."""

    def __init__(self, cache: Path, *, codes: dict[str, int] | None = None, lacking: str = "") -> None:
        self.compared: list[str] = []
        self._codes = codes or {}
        self._lacking = lacking
        self.routed: list[tuple[str, tuple[str, ...]]] = []
        self.programs: dict[str, list[str]] = {}
        self.ways = Ways(
            self._fetch,
            self._prepare,
            self._compare,
            self._compare_newest,
            self._compare_core,
            self._show_routers,
            cache,
        )

    def _fetch(self, version: str, cache: Path) -> Path:
        if self._lacking == "network":
            raise Missing("Maven said: Unknown host.")
        return cache / version

    def _prepare(self, jars: Path | None) -> Client:
        if self._lacking == "Java":
            raise Missing("There is no javac.")
        return Client("java", "", jars.name if jars else "debian")

    def _compare(self, used: Client, wanted: argparse.Namespace) -> int:
        self.compared.append(used.version)
        self.programs[used.version] = wanted.programs
        return self._codes.get(used.version, 0)

    def _show_routers(self, used: Client, cache: Path, programs: Sequence[str]) -> int:
        self.routed.append((used.version, tuple(programs)))
        if self._lacking in ("network", "Artemis"):
            raise Missing("Maven said: Unknown host.")
        return self._codes.get("routers", 0)

    def _compare_core(self, version: str, cache: Path, wanted: argparse.Namespace) -> int:
        name = f"Artemis {version}"
        if self._lacking in ("network", name):
            raise Missing("Maven said: Unknown host.")
        self.compared.append(name)
        self.programs[name] = wanted.core
        return self._codes.get(name, 0)

    def _compare_newest(self, cache: Path, _wanted: argparse.Namespace) -> int:
        self._fetch("newest broker", cache)
        self.compared.append("newest broker")
        return self._codes.get("newest broker", 0)


class TestWhatARunMayDoWithout:
    def test_a_whole_run_uses_both_clients_and_both_brokers(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        runs = Runs(tmp_path)
        assert main([], runs.ways) == 0
        assert runs.compared == [*CLASSIC, *BY_CORE]
        assert "NOT" not in "".join(capsys.readouterr())

    def test_a_whole_run_has_some_programs_with_the_newest_client(self, tmp_path: Path):
        runs = Runs(tmp_path)
        assert main([], runs.ways) == 0
        assert runs.programs["debian"] == []  # all
        assert "messages" in runs.programs["newest"]
        assert set(runs.programs["newest"]) < set(PROGRAMS)
        assert runs.routed == [("debian", ())]

    def test_the_newest_client_has_all_programs_where_it_was_asked_for(self, tmp_path: Path):
        runs = Runs(tmp_path)
        assert main(["--client", "newest"], runs.ways) == 0
        assert runs.programs == {"newest": []}
        assert runs.routed == [("newest", ())]

    @pytest.mark.parametrize("arguments", [["groups"], ["--case", "x"], ["--only", "delosmq"], ["--twice"]])
    def test_some_programs_leave_those_of_routers_out(self, tmp_path: Path, arguments: list[str]):
        runs = Runs(tmp_path)
        assert main(arguments, runs.ways) == 0
        assert runs.routed == []

    def test_programs_of_routers_alone_compare_nothing(self, tmp_path: Path):
        runs = Runs(tmp_path, codes={"routers": 1})
        assert main(["simple-router", "artemis-target"], runs.ways) == 1
        assert runs.compared == []
        assert runs.routed == [("debian", ("simple-router", "artemis-target"))]

    def test_what_a_router_does_not_show_fails_a_whole_run(self, tmp_path: Path):
        assert main([], Runs(tmp_path, codes={"routers": 1}).ways) == 1

    def test_artemis_that_was_asked_for_and_cannot_be_had_fails_the_run(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        assert main(["artemis-target"], Runs(tmp_path, lacking="Artemis").ways) == 1
        assert capsys.readouterr().err == "NOTHING COMPARED. Maven said: Unknown host.\n"

    @pytest.mark.parametrize("different", [*CLASSIC, *BY_CORE])
    def test_what_differs_with_any_of_them_fails_the_run(self, tmp_path: Path, different: str):
        runs = Runs(tmp_path, codes={different: 1})
        assert main([], runs.ways) == 1
        assert runs.compared == [*CLASSIC, *BY_CORE]

    @pytest.mark.parametrize("code", [0, 1])
    def test_without_a_network_its_last_words_are_that_the_newest_ones_were_left_out(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: int
    ):
        runs = Runs(tmp_path, codes={"debian": code}, lacking="network")
        # What continuous integration runs: what may be missing hides nothing that was found before.
        assert main(["--allow-missing"], runs.ways) == code
        assert runs.compared == ["debian"]
        told = [line for line in capsys.readouterr().out.splitlines() if line][-6:]
        assert told == [
            f"NOT COMPARED: {what}. Maven said: Unknown host."
            for what in (
                "Artemis as a target of routers",
                "the newest client",
                "the newest broker",
                "Artemis's client 2.44.0, by CORE",
                "Artemis's client 2.6.4, by CORE",
                "Artemis's client 2.28.0, by CORE",
            )
        ]

    def test_an_old_client_of_artemis_that_is_missing_leaves_the_others(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        runs = Runs(tmp_path, lacking="Artemis 2.6.4")
        assert main([], runs.ways) == 0
        assert runs.compared == [*CLASSIC, "Artemis 2.44.0", "Artemis 2.28.0"]
        assert capsys.readouterr().out.splitlines()[-1].startswith("NOT COMPARED: Artemis's client 2.6.4, by CORE. ")

    def test_programs_by_core_alone(self, tmp_path: Path):
        runs = Runs(tmp_path, codes={"Artemis 2.17.0": 1})
        assert main(["core-xa", "core-large"], runs.ways) == 0
        assert main(["core-xa", "--artemis-client", "2.17.0"], runs.ways) == 1
        assert runs.compared == ["Artemis 2.44.0", "Artemis 2.17.0"]
        assert runs.programs == {"Artemis 2.44.0": ["core-xa", "core-large"], "Artemis 2.17.0": ["core-xa"]}

    def test_a_client_that_was_asked_for_and_cannot_be_had_fails_the_run(self, tmp_path: Path):
        runs = Runs(tmp_path, lacking="network")
        assert main(["--client", "newest"], runs.ways) == 1
        assert runs.compared == []

    def test_the_newest_broker_alone(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        runs = Runs(tmp_path)
        assert main(["--broker", "newest"], runs.ways) == 0
        assert runs.compared == ["newest broker"]
        assert main(["groups", "--broker", "newest"], Ways(cache=tmp_path)) == 1
        assert capsys.readouterr().err.startswith("NOTHING COMPARED. With --broker newest name some of python-")

    def test_some_programs_ask_nobody_for_the_newest_client(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        runs = Runs(tmp_path, lacking="network")
        assert main(["groups"], runs.ways) == 0
        assert runs.compared == ["debian"]
        assert "NOT COMPARED" not in capsys.readouterr().out

    def test_without_java_it_fails(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        runs = Runs(tmp_path, lacking="Java")
        assert main([], runs.ways) == 1
        assert capsys.readouterr().err == "NOTHING COMPARED. There is no javac.\n"

    def test_or_says_that_it_was_told_not_to(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        runs = Runs(tmp_path, lacking="Java")
        assert main(["--allow-missing"], runs.ways) == 0
        assert capsys.readouterr().err.startswith("NOTHING COMPARED, which --allow-missing takes for success. ")
        assert runs.compared == []
