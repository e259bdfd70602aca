"""The commands at a broker whose HTTP interface speaks TLS."""

# BROKER-5

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import delosmq
from delosmq.cli.app import run_app
from delosmq.config.instance import load_instance
from delosmq.model.message import ANYCAST
from delosmq.model.settings import AddressDefinition, BrokerSettings, QueueSettings, TlsSettings, WebBind
from tests.certificates import Stores, make_stores

Call = Callable[..., str]

SETTINGS = BrokerSettings(
    addresses=(AddressDefinition("orders", frozenset({ANYCAST})),), queues=(QueueSettings("orders", "orders"),)
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def broker(stores: Stores) -> Iterator[delosmq.Broker]:
    with delosmq.Broker(settings=SETTINGS, http_tls=TlsSettings(str(stores.server))) as running:
        yield running


@pytest.fixture(scope="module")
def strict_broker(stores: Stores) -> Iterator[delosmq.Broker]:
    """It asks for certificates."""
    settings = TlsSettings(str(stores.server), trust_store_path=str(stores.authority), need_client_auth=True)
    with delosmq.Broker(settings=SETTINGS, http_tls=settings) as running:
        yield running


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs `delosmq WORDS` at a broker; gives what it says."""

    def called(broker: delosmq.Broker, *words: str, url: str = "") -> str:
        monkeypatch.setenv("DELOSMQ_PASSWORD", broker.password)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr("sys.argv", ["delosmq", *words, "--url", url or broker.http_url])
        run_app()
        said = capsys.readouterr()
        return said.out + said.err

    return called


def test_an_instance_is_made_whose_http_interface_speaks_tls(
    stores: Stores, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stores.server.parent)
    words = ["--http-host", "0.0.0.0", "--ssl-key", stores.server.name, "--ssl-trust", stores.authority.name]
    monkeypatch.setattr("sys.argv", ["delosmq", "create", str(tmp_path / "made"), *words, "--use-client-auth"])
    run_app()
    assert "https://0.0.0.0:8161" in capsys.readouterr().out
    made = load_instance(tmp_path / "made")
    expected = TlsSettings(str(stores.server), trust_store_path=str(stores.authority), need_client_auth=True)
    assert made.web == WebBind("0.0.0.0", 8161, expected)
    assert [notice for notice in made.notices if "HTTP" in notice] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--ssl-trust", "x.pem"], "add --ssl-key"),
        (["--use-client-auth"], "add --ssl-key"),
        (["--ssl-key", "x.pem", "--use-client-auth"], "give both"),
        (["--ssl-key", "x.pem", "--ssl-trust", "x.pem"], "give both"),
        (["--ssl-key", "none.pem"], "none.pem is missing"),
    ],
)
def test_what_no_instance_can_be_made_of_is_said_and_leaves_nothing(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["delosmq", "create", "made", *words])
    run_app()
    assert says in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_the_authority_is_an_option_or_a_variable(
    broker: delosmq.Broker, stores: Stores, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "orders" in call(broker, "queue", "stat", "--ca-file", str(stores.authority))
    monkeypatch.setenv("DELOSMQ_CA_FILE", str(stores.authority))
    assert "orders" in call(broker, "explain", "queue", "orders")
    spark = ("spark", "triage", "--dlq", "orders", "--servers", broker.http_url, "--dry-run")
    assert "DMQ" not in call(broker, *spark)


def test_an_authority_that_is_not_known_and_another_name_are_told(
    broker: delosmq.Broker, stores: Stores, call: Call
) -> None:
    told = call(broker, "queue", "stat")
    assert told.startswith(f"DMQ7116: the certificate of {broker.http_url} is not trusted (")
    assert "--ca-file" in told
    elsewhere = broker.http_url.replace("127.0.0.1", "localhost")
    told = call(broker, "queue", "stat", "--ca-file", str(stores.authority), url=elsewhere)
    assert told.startswith("DMQ7116: ")
    assert "'localhost'" in told


def test_http_at_the_port_of_https_is_told(broker: delosmq.Broker, call: Call) -> None:
    told = call(broker, "queue", "stat", url=broker.http_url.replace("https:", "http:"))
    assert told.startswith("DMQ7004: ")
    assert "this port speaks TLS: write https:// in the address" in told


def test_a_certificate_of_the_client_is_asked_for(strict_broker: delosmq.Broker, stores: Stores, call: Call) -> None:
    trusting = ("--ca-file", str(stores.authority))
    stat = ("queue", "stat")
    assert "orders" in call(strict_broker, *stat, *trusting, "--cert-file", str(stores.client))
    for more in ((), ("--cert-file", str(stores.stranger))):
        told = call(strict_broker, *stat, *trusting, *more)
        assert told.startswith(f"DMQ7119: {strict_broker.http_url} does not accept the client's certificate, or asks")


def test_files_that_are_none_are_named(broker: delosmq.Broker, stores: Stores, call: Call, tmp_path: Path) -> None:
    gone, empty = tmp_path / "gone.pem", tmp_path / "empty.pem"
    empty.write_text("nothing")
    told = call(broker, "queue", "stat", "--ca-file", str(gone))
    assert told == f"DMQ7115: can't read the authorities in {gone}: it is missing; correct the path\n"
    told = call(broker, "queue", "stat", "--ca-file", str(empty))
    assert told.startswith(f"DMQ7115: can't read the authorities in {empty}: it is no PEM file")
    told = call(broker, "queue", "stat", "--cert-file", str(empty))
    assert told.startswith(f"DMQ7115: can't read the certificate in {empty}: it is no PEM file")
