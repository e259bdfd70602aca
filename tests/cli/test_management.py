"""The commands that manage and explain a running broker, against one."""

# BROKER-5

import base64
import io
import json
import logging
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pyarrow
import pytest
import stomp

import delosmq
from delosmq.cli.app import run_app
from delosmq.cli.http_client import HttpClient, _told
from delosmq.cli.options import NUMBERS, SWITCHES, read_settings
from delosmq.cli.queue_commands import _body, _properties
from delosmq.engine.base.slots import Slot
from delosmq.manage.http.requests.resources import CreateQueue, UpdateQueue
from delosmq.model.errors import BrokerError
from delosmq.model.message import Message as BrokerMessage
from delosmq.model.settings import AddressMatch, BrokerSettings, QueueSettings, SecurityMatch
from delosmq.server.dead_letter_log import DeadLetterLog
from delosmq.server.peer_log import LINES_PER_PEER
from tests.patience import PATIENCE_S

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def broker() -> Iterator[delosmq.Broker]:
    with delosmq.Broker() as running:
        yield running


@pytest.fixture
def call(broker: delosmq.Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(broker, monkeypatch, capsys)


def caller(broker: delosmq.Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs `delosmq WORDS`; gives exit code, output and errors."""

    def called(*words: str) -> tuple[int, str, str]:
        monkeypatch.setenv("DELOSMQ_PASSWORD", broker.password)
        arguments = ["delosmq", *words, "--url", broker.http_url, "--user", broker.user]
        monkeypatch.setattr("sys.argv", arguments)
        code = run_app()
        said = capsys.readouterr()
        return code, said.out, said.err

    return called


def said(result: tuple[int, str, str]) -> str:
    code, out, errors = result
    assert (code, errors) == (0, "")
    return out


def refused(result: tuple[int, str, str], expected: int = 1) -> str:
    code, out, errors = result
    assert (code, out) == (expected, "")
    assert len(errors.strip().splitlines()) == 1
    return errors


def send(broker: delosmq.Broker, destination: str, count: int, **headers: str) -> None:
    client = stomp.Connection12([(broker.host, broker.stomp_port)])
    receipt = stomp.listener.WaitingListener("sent")
    client.set_listener("receipt", receipt)
    client.connect(broker.user, broker.password, wait=True)
    for number in range(count):
        client.send(destination, "m", receipt="sent" if number == count - 1 else None, **headers)
    receipt.wait_on_receipt()
    client.disconnect()


def test_a_queue_lives_through_all_commands(call: Call, broker: delosmq.Broker) -> None:
    made = said(call("queue", "create", "a/b c", "--address", "abc", "--set", "ring-size=3", "--set", "filter=a = 1"))
    assert made == "queue 'a/b c' is created on address 'abc' (ANYCAST)\n"
    changed = said(call("queue", "update", "a/b c", "--set", "ring-size=default", "--set", "filter="))
    assert changed == "queue 'a/b c' now has ring-size -1, filter none\n"
    for verb, sentence in (
        ("pause", "queue 'a/b c' is paused\n"),
        ("resume", "queue 'a/b c' delivers again\n"),
        ("disable", "queue 'a/b c' is disabled\n"),
        ("enable", "queue 'a/b c' is enabled\n"),
    ):
        assert said(call("queue", verb, "a/b c")) == sentence
    send(broker, "/queue/abc::a/b c", 3)
    assert said(call("queue", "purge", "a/b c")) == "3 messages of queue 'a/b c' are removed\n"
    send(broker, "/queue/abc::a/b c", 2)
    assert said(call("queue", "delete", "a/b c")) == "queue 'a/b c' is deleted, and 2 messages with it\n"
    assert refused(call("queue", "delete", "a/b c")).startswith("DMQ7004")


def test_stat_has_all_columns_and_filters(call: Call) -> None:
    for number in range(3):
        said(call("queue", "create", f"stat.{number}"))
    lines = said(call("queue", "stat", "--filter", "stat.")).splitlines()
    heading = " ".join(lines[0].split())
    assert heading.startswith(
        "NAME ADDRESS ROUTING CONSUMERS MESSAGES DELIVERING SCHEDULED HELD ADDED ACKED EXPIRED KILLED"
    )
    assert heading.endswith("REPLACED BYTES RING PAUSED ENABLED")
    assert [line.split()[0] for line in lines[1:]] == ["stat.0", "stat.1", "stat.2"]
    assert lines[1].split()[-2:] == ["no", "yes"]
    assert len(said(call("queue", "stat", "--filter", "stat.", "--limit", "2")).splitlines()) == 3


def test_addresses(call: Call) -> None:
    assert said(call("address", "create", "news")) == "address 'news' takes MULTICAST\n"
    assert said(call("address", "create", "news", "--anycast")) == "address 'news' takes ANYCAST, MULTICAST\n"
    assert re.search(r"^news +ANYCAST,MULTICAST", said(call("address", "stat", "--filter", "news")), re.MULTILINE)
    assert said(call("address", "clear-duplicate-ids", "news")) == "0 duplicate ids of address 'news' are forgotten\n"
    said(call("queue", "create", "news.q", "--address", "news", "--multicast"))
    assert "delete them first, or force it" in refused(call("address", "delete", "news"))
    assert said(call("address", "delete", "news", "--force")) == "address 'news' is deleted, and 1 queue with it\n"


def test_what_is_staged(call: Call, broker: delosmq.Broker) -> None:
    sink = io.BytesIO()
    table = pyarrow.table({"body": ["x", "y"]})
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)

    def post(path: str, body: bytes, kind: str) -> None:
        token = base64.b64encode(f"{broker.user}:{broker.password}".encode()).decode()
        headers = {"Authorization": f"Basic {token}", "Content-Type": kind}
        with urllib.request.urlopen(
            urllib.request.Request(f"{broker.http_url}/api/v1/staging/app/{path}", body, headers)
        ) as answer:
            assert answer.status == 200

    stream = "application/vnd.apache.arrow.stream"
    post("1/parts/part-1?address=staged.here", sink.getvalue(), stream)
    listed = said(call("staged", "list")).split()
    assert listed[listed.index("app") :][:5] == ["app", "1", "part-1", broker.user, "2"]
    assert "1 part of 'app' discarded" in said(call("staged", "discard", "app"))
    post("2/publish", b'{"parts": []}', "application/json")
    (known,) = json.loads(said(call("staged", "published", "--json")))
    assert (known["application"], known["published"]) == ("app", 2)
    assert json.loads(said(call("staged", "list", "--json"))) == []
    assert "forgotten" in said(call("staged", "forget", "app"))
    assert "DMQ7118" in refused(call("staged", "forget", "app"))


def test_transactions(call: Call) -> None:
    assert said(call("transaction", "list", "--prepared")).split()[:3] == ["ID", "XID", "STATE"]
    assert "there is no branch 0102" in refused(call("transaction", "commit", "0102"))
    assert "there is no branch 0102" in refused(call("transaction", "rollback", "0102"))
    assert said(call("transaction", "heuristics")).split() == ["XID", "OUTCOME", "USER"]
    assert "there is no branch 0102" in refused(call("transaction", "forget", "0102"))


def test_explain_a_queue_and_a_message(call: Call, broker: delosmq.Broker) -> None:
    said(call("queue", "create", "why", "--set", "max-consumers=4"))
    send(broker, "/queue/why", 3)
    told = said(call("explain", "queue", "why", "--limit", "2"))
    assert "advice: queue 'why' has no consumer; start one" in told
    assert re.search(r"^ +3 no consumer$", told, re.MULTILINE)
    found = re.search(r"^ *(\d+) +waiting +no consumer", told, re.MULTILINE)
    assert found is not None
    assert re.search(r"^more with --after \d+$", told, re.MULTILINE)
    assert re.search(r"^max-consumers +4 +queue$", told, re.MULTILINE)
    one = said(call("explain", "message", found[1]))
    assert one.startswith(f"message {found[1]}, sent to 'why' by '{broker.user}' at 20")
    assert "queue 'why': waiting, no consumer\n  advice: " in one
    as_json = json.loads(said(call("explain", "message", f"ID:{found[1]}", "--queue", "why", "--json")))
    assert as_json["standings"][0]["rule"] == "no consumer"
    assert json.loads(said(call("explain", "queue", "why", "--json")))["counts"] == {"no consumer": 3}


def test_explain_what_is_not_there(call: Call) -> None:
    assert "there is no queue 'nothing'" in refused(call("explain", "queue", "nothing"))
    assert "DMQ7004" in refused(call("explain", "message", "99999999"))
    assert "is no message id" in refused(call("explain", "message", "tea"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--set", "ringsize=3"), "--set ringsize is unknown; did you mean 'ring-size'?"),
        (("--set", "max_consumer=3"), "--set max-consumer is unknown; did you mean 'max-consumers'?"),
        (("--set", "ring-size=many"), "DMQ7104: --set ring-size=many: write a whole number such as 5, or default"),
        (("--set", "enabled=maybe"), "DMQ7103: --set enabled=maybe: write yes or no, or default"),
        (("--set", f"ring-size={1 << 70}"), "--set ring-size must be 9223372036854775807 or less"),
        (("--set", "routing-type=BOTH"), "--set routing-type must be 'ANYCAST' or 'MULTICAST'"),
        (("--set", "routing-type=default"), "--set routing-type must be 'ANYCAST' or 'MULTICAST'"),
        (("--set", "non-destructive=1", "--set", "purge-on-no-consumers=1"), "set one of the two to false"),
        (("--set", "ring-size"), "DMQ7100"),
        (("--set", "=3"), "DMQ7100"),
        (("--set", "ring-size=3", "--set", "ring_size=4"), "DMQ7101"),
        ((), "DMQ7102"),
        (("--set", "durable=false"), "can't change while it exists"),
        (("--set", "ring-size=-5"), "ring-size -5 of queue 'settings.q' makes no sense"),
    ],
)
def test_settings_that_make_no_sense(call: Call, words: tuple[str, ...], says: str) -> None:
    call("queue", "create", "settings.q")
    expected = 2 if says.startswith("DMQ7") else 1
    assert says in refused(call("queue", "update", "settings.q", *words), expected)


def test_settings_are_read_by_what_they_are() -> None:
    read = read_settings(["ring-size=5", "exclusive=true", "filter=true", "group-first-key=default", "auto-delete=no"])
    assert read == {"ring_size": 5, "exclusive": True, "filter": "true", "group_first_key": None, "auto_delete": False}
    with pytest.raises(BrokerError, match="DMQ7100"):
        read_settings(["x"])


@pytest.mark.parametrize("word", ["yes", "on", "1", "true", "TRUE", " Yes"])
def test_switches_take_the_words_that_people_write(word: str) -> None:
    assert read_settings([f"paused={word}"]) == {"paused": True}


@pytest.mark.parametrize("word", ["no", "off", "0", "false"])
def test_and_those_against_it(word: str) -> None:
    assert read_settings([f"enabled={word}"]) == {"enabled": False}


def test_defaults_of_what_has_none_of_its_address() -> None:
    assert read_settings(["enabled=default", "paused=default"]) == {"enabled": True, "paused": False}


def test_each_setting_of_the_api_is_known_by_its_kind() -> None:
    kinds = {
        name: str(field.annotation) for name, field in (CreateQueue.model_fields | UpdateQueue.model_fields).items()
    }
    assert {name for name, kind in kinds.items() if "bool" in kind} == SWITCHES
    assert {name for name, kind in kinds.items() if "int" in kind} == NUMBERS


def test_switches_are_shown_as_in_tables(call: Call) -> None:
    said(call("queue", "create", "shown"))
    changed = said(call("queue", "update", "shown", "--set", "paused=yes", "--set", "exclusive=off"))
    assert changed == "queue 'shown' now has paused yes, exclusive no\n"


def test_one_is_not_many(call: Call, broker: delosmq.Broker) -> None:
    said(call("queue", "create", "single"))
    send(broker, "/queue/single", 1)
    assert said(call("explain", "queue", "single")).startswith("queue 'single' on address 'single': 1 message\n")
    assert said(call("queue", "purge", "single")) == "1 message of queue 'single' is removed\n"
    send(broker, "/queue/single", 1)
    assert said(call("queue", "delete", "single")) == "queue 'single' is deleted, and 1 message with it\n"


def test_browse_a_queue(call: Call, broker: delosmq.Broker) -> None:
    said(call("queue", "create", "looked"))
    send(broker, "/queue/looked", 3, colour="red")
    code, out, errors = call("queue", "browse", "looked", "--limit", "2")
    assert (code, errors.split()[:4]) == (0, ["there", "are", "more:", "--after"])
    assert re.search(r"^ID:\d+ +waiting +\d+ +4 +no +0 +admin +colour=red +m$", out, re.MULTILINE)
    assert len(out.splitlines()) == 3
    page = json.loads(said(call("queue", "browse", "looked", "--json")))
    assert [one["text"] for one in page["messages"]] == ["m", "m", "m"]


def test_browse_shows_what_is_durable_and_when_it_expires(call: Call, broker: delosmq.Broker) -> None:
    said(call("queue", "create", "looked.late"))
    send(broker, "/queue/looked.late", 1, persistent="true", expires="4102444800000")
    heading, row = said(call("queue", "browse", "looked.late")).splitlines()
    assert heading.split()[:6] == ["ID", "STANDING", "BYTES", "PRIORITY", "DURABLE", "EXPIRES"]
    assert row.split()[4:6] == ["yes", "2100-01-01T00:00:00.000Z"]


def test_send_to_a_queue(call: Call, tmp_path: Path) -> None:
    said(call("queue", "create", "sent.to"))
    assert re.match(r"message ID:\d+ is in queue 'sent.to'\n", said(call("queue", "send", "sent.to", "--text", "tea")))
    file = tmp_path / "body"
    file.write_text("two\nlines")
    said(call("queue", "send", "sent.to", "--file", str(file), "--priority", "0", "--non-durable"))
    page = json.loads(said(call("queue", "browse", "sent.to", "--json")))
    assert [(one["text"], one["durable"]) for one in page["messages"]] == [("tea", True), ("two\nlines", False)]
    assert "DMQ7109" in refused(call("queue", "send", "sent.to"), 2)
    assert "DMQ7110" in refused(call("queue", "send", "sent.to", "--file", str(tmp_path / "none")))
    assert "there is no queue 'nowhere'" in refused(call("queue", "send", "nowhere", "--text", "x"))


def test_a_body_that_is_not_utf8_is_said_to_be_none(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said(call("queue", "create", "bytes.to"))
    raw = b"\xff\xfe"
    (tmp_path / "body").write_bytes(raw)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw), "utf-8", "surrogateescape"))
    for file, source in (("-", "standard input"), (str(tmp_path / "body"), str(tmp_path / "body"))):
        sentence = f"DMQ7110: can't read the body from {source}: it is not UTF-8; give it a text\n"
        assert refused(call("queue", "send", "bytes.to", "--file", file)) == sentence
    assert "DMQ7111" in refused(call("queue", "send", "bytes.to", "--text", "\udcff"), 2)


@pytest.mark.parametrize("endless", [True, False])
def test_a_body_beyond_the_limit_is_refused_unsent_and_not_read_whole(
    call: Call, tmp_path: Path, *, endless: bool
) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"x" * 5_000_000)
    source = "/dev/zero" if endless else str(file)
    sentence = "DMQ7113: a request's body may have 1048576 bytes at most, as JSON; send a shorter text"
    assert sentence in refused(call("queue", "send", "DLQ", "--file", source))
    assert sentence in refused(call("queue", "send", "DLQ", "--text", "x" * 1_048_576))


def test_text_on_standard_input_is_sent(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    said(call("queue", "create", "piped.to"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("té\r\n".encode())))
    said(call("queue", "send", "piped.to", "--file", "-"))
    page = json.loads(said(call("queue", "browse", "piped.to", "--json")))
    assert [one["text"] for one in page["messages"]] == ["té\r\n"]


def test_what_is_wrong_with_a_request_as_a_whole_names_no_option() -> None:
    problem = {"faults": [{"field": "", "message": "must be a JSON object"}]}
    assert _told(json.dumps(problem), HTTPError("", 400, "", Message(), None)) == "the request must be a JSON object"


def test_a_ring_of_nothing_is_told(call: Call) -> None:  # RING-1
    code, out, errors = call("queue", "create", "r0", "--set", "ring-size=0")
    assert (code, out) == (0, "queue 'r0' is created on address 'r0' (ANYCAST)\n")
    assert errors.startswith("note: queue 'r0' has a ring-size of 0 and keeps nothing")
    sent = said(call("queue", "send", "r0", "--text", "x"))
    assert re.fullmatch(
        r"message ID:\d+ was accepted, and the ring of queue 'r0' pushed it out at once: it is gone\n", sent
    )
    assert "note: queue 'r0' has" in call("queue", "update", "r0", "--set", "ring-size=0")[2]


def test_bodies_and_properties_stay_in_their_line() -> None:
    message = {"text": "a\n\x1b[31mb", "cut": True, "body_bytes": 99, "body_kind": "text"}
    assert _body(message) == "a\\n\\x1b[31mb..."
    assert _body(message | {"text": "", "body_bytes": 1, "body_kind": "bytes"}) == "(bytes, 1 byte)"
    assert _properties({"properties": {"a": "1", "b": "x\ny"}}) == "a=1, b='x\\ny'"


def test_explain_an_address(call: Call) -> None:
    said(call("address", "create", "leads"))
    assert "advice: address 'leads' has no queue" in said(call("explain", "address", "leads"))
    said(call("queue", "create", "leads.q", "--address", "leads", "--multicast", "--set", "filter=a = 1"))
    told = said(call("explain", "address", "leads"))
    assert told.startswith(
        "address 'leads' takes MULTICAST\nadvice: what is sent to address 'leads' reaches its queues"
    )
    assert re.search(r"^leads.q +leads +MULTICAST +yes +0 +0 +a = 1$", told, re.MULTILINE)
    assert re.search(r"^ +0 reached no queue$", told, re.MULTILINE)
    assert json.loads(said(call("explain", "address", "leads", "--json")))["queue_count"] == 1
    assert "there is no address 'nowhere'" in refused(call("explain", "address", "nowhere"))


@pytest.mark.parametrize(
    "words",
    [
        *(("queue", verb) for verb in ("pause", "browse", "delete")),
        *(("explain", what) for what in ("queue", "address")),
        ("address", "delete"),
    ],
)
def test_an_empty_name_is_refused_unsent(call: Call, words: tuple[str, str]) -> None:
    assert refused(call(*words, ""), 2) == "DMQ7114: NAME must not be empty\n"


def test_an_empty_id_is_refused_unsent(call: Call) -> None:
    assert refused(call("transaction", "forget", ""), 2) == "DMQ7114: XID must not be empty\n"
    assert refused(call("explain", "message", ""), 2) == "DMQ7114: ID must not be empty\n"


def test_a_message_that_is_gone_is_said_so(call: Call) -> None:
    assert "message 99999999 is gone: no queue that you may view has it" in refused(
        call("explain", "message", "99999999")
    )


# -- where to ------------------------------------------------------------------------------------------------------


def at(broker: delosmq.Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr("sys.argv", ["delosmq", *words, "--user", broker.user])
    assert run_app() == 1
    errors = capsys.readouterr().err
    assert len(errors.strip().splitlines()) == 1
    return errors


@pytest.mark.parametrize("words", [("queue", "stat"), ("queue", "pause", "q")])
def test_the_port_for_messages_is_named_as_such(
    broker: delosmq.Broker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.setenv("DELOSMQ_PASSWORD", broker.password)
    told = at(broker, monkeypatch, capsys, *words, "--url", f"http://{broker.host}:{broker.stomp_port}")
    assert told.startswith(f"DMQ7107: http://{broker.host}:{broker.stomp_port} ")
    assert "a port for messages, and not the HTTP interface; name that with --url" in told
    assert broker.http_url.rpartition(":")[2] in told


def test_a_port_of_another_program_is_named_as_such(
    broker: delosmq.Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DELOSMQ_PASSWORD", broker.password)
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"220 ready\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
        told = at(broker, monkeypatch, capsys, "queue", "stat", "--url", url)
        answering.join()
    assert told.startswith(f"DMQ7108: {url} does not speak HTTP")


def test_tls_that_is_not_there_is_said(
    broker: delosmq.Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = broker.http_url.replace("http:", "https:")
    monkeypatch.setenv("DELOSMQ_PASSWORD", "x")
    monkeypatch.setattr("sys.argv", ["delosmq", "queue", "stat", "--url", url])
    assert run_app() == 1
    assert capsys.readouterr().err == f"DMQ7112: there is no TLS at {url}, write http:// in --url\n"


def test_an_empty_password_is_said(
    broker: delosmq.Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("DELOSMQ_PASSWORD", "")
    assert at(broker, monkeypatch, capsys, "queue", "stat").startswith("DMQ7105: DELOSMQ_PASSWORD is empty: set it to")
    file = tmp_path / "secret"
    file.write_text("\n")
    told = at(broker, monkeypatch, capsys, "queue", "stat", "--password-file", str(file))
    assert told.startswith(f"DMQ7106: the password file {file} is empty")
    file.write_text("x" * 5_000)
    told = at(broker, monkeypatch, capsys, "queue", "stat", "--password-file", str(file))
    assert told.startswith(f"DMQ7003: can't read the password file {file}: it holds more than 4096 characters")
    file.write_bytes(b"\xff")
    assert "it is not UTF-8" in at(broker, monkeypatch, capsys, "queue", "stat", "--password-file", str(file))


def test_a_filter_without_a_hit_says_so(call: Call) -> None:
    for kind in ("queue", "address"):
        code, _, errors = call(kind, "stat", "--filter", "no.such.name")
        assert (code, errors) == (
            0,
            f"there is no {kind} with 'no.such.name' in its name that user 'admin' may view\n",
        )


def test_what_stat_shows_is_there_as_json(call: Call) -> None:
    said(call("queue", "create", "as.json"))
    (queue,) = json.loads(said(call("queue", "stat", "--filter", "as.json", "--json")))
    assert (queue["name"], queue["message_count"], queue["ring_size"]) == ("as.json", 0, -1)
    (address,) = json.loads(said(call("address", "stat", "--filter", "as.json", "--json")))
    assert address["name"] == "as.json"
    assert json.loads(said(call("transaction", "list", "--json"))) == []
    code, out, _ = call("queue", "stat", "--filter", "no.such.name", "--json")
    assert (code, json.loads(out)) == (0, [])


@pytest.mark.parametrize(
    "words",
    [("create",), ("convert",), ("queue", "send"), ("queue", "stat"), ("queue", "create"), ("spark", "archive"), ()],
)
def test_help_shows_flags_as_flags(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.argv", ["delosmq", *words, "--help"])
    assert run_app() == 0
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert "<bool>" not in shown
    assert "--no-password-stdin" not in shown


def test_changes_are_in_the_log_with_who_and_from_where(
    broker: delosmq.Broker, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "delosmq")
    said(call("queue", "create", "watched", "--set", "ring-size=7"))
    said(call("queue", "pause", "watched"))
    said(call("queue", "purge", "watched"))
    said(call("queue", "stat"))
    said(call("queue", "delete", "watched"))
    told = [record.getMessage() for record in caplog.records if record.name == "delosmq.audit"]
    assert [line.partition(": ")[2] for line in told] == [
        "user 'admin' at 127.0.0.1: createQueue 'watched' {'durable': True, 'ring_size': 7, 'routing_type': 'ANYCAST'}",
        "user 'admin' at 127.0.0.1: pauseQueue 'watched'",
        "user 'admin' at 127.0.0.1: purgeQueue 'watched'",
        "user 'admin' at 127.0.0.1: deleteQueue 'watched'",
    ]


def test_what_was_refused_or_names_lines_is_no_line_of_its_own(call: Call, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "delosmq")
    said(call("queue", "create", "two\u2028lines"))
    refused(call("queue", "delete", "no.such.name"))
    (told,) = [record.getMessage() for record in caplog.records if record.name == "delosmq.audit"]
    assert told.isprintable()


def test_dead_letters_are_in_the_log_and_counted_when_they_are_many(
    broker: delosmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "delosmq")

    async def bury() -> None:
        log = DeadLetterLog()
        log.begin(logging.getLogger("delosmq"))
        slot = Slot(BrokerMessage("dying", "stomp", b"", b"x", timestamp_ms=0), False)
        slot.delivery_count = 10
        for _ in range(100):
            log.message_dead_lettered("dying", slot, "DLQ")
        log.close()

    broker.call(bury())
    *told, counted = [record.getMessage() for record in caplog.records if "DMQ6181" in record.getMessage()]
    assert len(told) == LINES_PER_PEER
    assert "90 more of these in the last minute, from queue 'dying' (90)" in counted
    assert "client" not in counted
    assert told[0].startswith("DMQ6181: message 0 of queue 'dying' is a dead letter in 'DLQ' after 10 deliveries")


@pytest.mark.parametrize("path", ["/", ""])
def test_the_root_says_where_to_go_on(broker: delosmq.Broker, path: str) -> None:
    with urllib.request.urlopen(broker.http_url + path, timeout=PATIENCE_S) as answer:
        page = json.load(answer)
    assert page["openapi"].startswith("/openapi.json")
    assert page["api"].startswith("/api/v1/queues")
    assert {"health", "metrics", "documentation"} <= page.keys()


def test_the_module_runs_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "delosmq", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == delosmq.__version__
    shown = subprocess.run(
        [sys.executable, "-m", "delosmq", "run", "--help"], capture_output=True, text=True, check=True
    )
    assert "instance directory" in shown.stdout


def test_a_refused_login_names_the_user_in_the_log(broker: delosmq.Broker, caplog: pytest.LogCaptureFixture) -> None:
    for user in ("admin", "stranger"):
        request = urllib.request.Request(broker.http_url + "/api/v1/broker")
        request.add_header("Authorization", "Basic " + base64.b64encode(f"{user}:no".encode()).decode())
        with pytest.raises(HTTPError, match="401"):
            urllib.request.urlopen(request, timeout=PATIENCE_S)
        client = stomp.Connection12([(broker.host, broker.stomp_port)], reconnect_attempts_max=1)
        with pytest.raises(stomp.exception.ConnectFailedException):
            client.connect(user, "no", wait=True)
    lines = [record.getMessage() for record in caplog.records]
    for user in ("admin", "stranger"):  # alike, whether there is such a user or not
        assert any(
            f"DMQ6302: refused a login from 127.0.0.1: user '{user}' or its password is wrong" in one for one in lines
        )
        assert any(f"DMQ5106: login '{user}' or its passcode is wrong" in one for one in lines)


def test_stat_shows_what_is_held_apart_from_what_is_scheduled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    no_queue = {"expiry_address": "nowhere", "auto_create_queues": False, "auto_create_addresses": False}
    settings = BrokerSettings(queues=(QueueSettings("q", "q"),), address_settings=(AddressMatch("#", no_queue),))
    with delosmq.Broker(settings=settings) as broker:
        call = caller(broker, monkeypatch, capsys)
        send(broker, "/queue/q", 2, expires="1")
        send(broker, "/queue/q", 1, AMQ_SCHEDULED_DELAY="3600000")
        assert re.search(r"^ +2 held$", said(call("explain", "queue", "q")), re.MULTILINE)
        heading, values = (line.split() for line in said(call("queue", "stat")).splitlines())
        shown = dict(zip(heading, values, strict=True))
        assert {name: shown[name] for name in ("MESSAGES", "DELIVERING", "SCHEDULED", "HELD")} == {
            "MESSAGES": "3",
            "DELIVERING": "0",
            "SCHEDULED": "1",
            "HELD": "2",
        }


def test_stat_shows_queues_of_a_broker_that_does_not_say_how_many_are_held(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(call("queue", "create", "old"))
    get = HttpClient.get

    def of_an_earlier_version(client: HttpClient, path: str, **parameters: Any) -> Any:
        page = get(client, path, **parameters)
        for one in page["queues"]:
            del one["held_count"]
        return page

    monkeypatch.setattr(HttpClient, "get", of_an_earlier_version)
    heading, values = said(call("queue", "stat", "--filter", "old")).splitlines()
    shown = dict(zip(heading.split(), values.split(), strict=True))
    assert (shown["NAME"], shown["SCHEDULED"], shown["HELD"]) == ("old", "0", "0")


@pytest.mark.parametrize("kind", ["queue", "address"])
def test_what_a_user_may_not_view_is_said(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stat(*matches: tuple[str, str]) -> tuple[list[str], str]:
        """Names and what is said, with permissions of matches."""
        security = tuple(SecurityMatch(match, {permission: frozenset({"amq"})}) for match, permission in matches)
        queues = (QueueSettings("a", "a"), QueueSettings("b", "b"))
        with delosmq.Broker(settings=BrokerSettings(queues=queues, security_settings=security)) as broker:
            code, out, errors = caller(broker, monkeypatch, capsys)(kind, "stat")
        assert code == 0
        return [line.split()[0] for line in out.splitlines()[1:]], errors

    # As the broker.xml of a new instance of Artemis has it.
    names, errors = stat(("#", "manage"))
    assert names == []
    assert errors.startswith(f"there is no {kind} that user 'admin' may view\nDMQ6176: user 'admin' has the permission")
    assert "'view' on no address, so that nothing is listed; grant 'view', and 'edit' to change things" in errors
    for some in ((("#", "view"), ("b", "send"), ("DLQ", "send")), (("a", "view"),)):
        names, errors = stat(*some)
        assert names == ["a"]
        assert errors.startswith("DMQ6176: user 'admin' has the permission 'view' on some addresses only")
    assert stat(("#", "view"))[1] == ""
