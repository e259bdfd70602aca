"""The commands that manage and explain a running broker, against one."""

# BROKER-5

import json
import re
from collections.abc import Callable, Iterator

import pytest
import stomp

import delosmq
from delosmq.cli.app import run_app
from delosmq.cli.options import read_settings
from delosmq.model.errors import BrokerError

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def broker() -> Iterator[delosmq.Broker]:
    with delosmq.Broker() as running:
        yield running


@pytest.fixture
def call(broker: delosmq.Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
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


def refused(result: tuple[int, str, str]) -> str:
    code, out, errors = result
    assert (code, out) == (1, "")
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
    assert changed == "queue 'a/b c' now has ring-size -1, filter \n"
    for verb, sentence in (
        ("pause", "queue 'a/b c' is paused\n"),
        ("resume", "queue 'a/b c' hands out again\n"),
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
    assert heading.startswith("NAME ADDRESS ROUTING CONSUMERS MESSAGES DELIVERING SCHEDULED ADDED ACKED EXPIRED KILLED")
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
    assert said(call("address", "delete", "news", "--force")) == "address 'news' is deleted, and 1 queues with it\n"


def test_transactions(call: Call) -> None:
    assert said(call("transaction", "list", "--prepared")).split()[:3] == ["ID", "XID", "STATE"]
    assert "there is no branch 0102" in refused(call("transaction", "commit", "0102"))
    assert "there is no branch 0102" in refused(call("transaction", "rollback", "0102"))


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
        (("--set", "ringsize=3"), "did you mean 'ring_size'"),
        (("--set", "ring-size=many"), "ring_size: Input should be a valid integer"),
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
    assert says in refused(call("queue", "update", "settings.q", *words))


def test_settings_are_read_by_what_they_are() -> None:
    read = read_settings(["ring-size=5", "exclusive=true", "filter=true", "group-first-key=default", "auto-delete=no"])
    assert read == {"ring_size": 5, "exclusive": True, "filter": "true", "group_first_key": None, "auto_delete": "no"}
    with pytest.raises(BrokerError, match="DMQ7100"):
        read_settings(["x"])
