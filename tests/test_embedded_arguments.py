"""What a broker inside this process can be told, and how mistakes are told."""

# BROKER-6

import json
import logging
import re
import socket
import urllib.request
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import delosmq
from benchmarks.machine import free_port
from delosmq.config.instance import create_instance, load_instance
from delosmq.config.settings_check import ELEMENTS
from delosmq.embedded import default_settings
from delosmq.embedded.arguments import chosen_settings
from delosmq.manage.http import app as http_app
from delosmq.manage.http import openapi
from delosmq.model import settings as model_settings
from delosmq.model.errors import ConfigurationError, LimitError
from delosmq.model.settings import (
    AcceptorSettings,
    AddressMatch,
    BrokerSettings,
    JournalSettings,
    QueueSettings,
    SecurityMatch,
    TlsSettings,
    WebBind,
)
from tests.certificates import make_stores
from tests.patience import PATIENCE_S

COMPILED = not (model_settings.__file__ or "").endswith(".py")
BROKER_XML = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <journal-file-size>4M</journal-file-size>
  <acceptors>
    <acceptor name="all">tcp://127.0.0.1:0?protocols=STOMP,OPENWIRE;anycastPrefix=/queue/</acceptor>
  </acceptors>
  <security-settings><security-setting match="#">
    <permission type="send" roles="clerks"/><permission type="view" roles="clerks"/>
  </security-setting></security-settings>
  <addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>
</core></configuration>
"""


def get(broker: delosmq.Broker, path: str, password: str = "") -> Any:
    token = b64encode(f"{broker.user}:{password or broker.password}".encode()).decode()
    request = urllib.request.Request(broker.http_url + path, headers={"Authorization": f"Basic {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_the_http_interface_speaks_tls_when_it_is_asked_to(tmp_path: Path) -> None:
    stores = make_stores(tmp_path)
    broker = delosmq.Broker(http_tls=TlsSettings(str(stores.server)))
    for _ in range(2):
        with broker:
            assert broker.http_url == f"https://127.0.0.1:{broker.http_port}"
            with urllib.request.urlopen(f"{broker.http_url}/health/live", context=stores.client_context()) as answer:
                assert answer.status == 200
    for wrong in ({"http": False}, {"ports": False}):
        with pytest.raises(ConfigurationError, match="DMQ6025: Broker has http_tls and no HTTP interface"):
            delosmq.Broker(http_tls=TlsSettings(str(stores.server)), **wrong)  # type: ignore[arg-type]
    with pytest.raises(LimitError, match=r"DMQ6110: the HTTP interface can't speak TLS: .* is missing"):
        with delosmq.Broker(http_tls=TlsSettings(str(tmp_path / "gone.pem"))):
            pass


def test_ports_and_urls_are_those_that_were_asked_for() -> None:
    stomp, openwire, http = free_port(), free_port(), free_port()
    with delosmq.Broker(stomp_port=stomp, openwire_port=openwire, http_port=http) as broker:
        assert (broker.stomp_port, broker.openwire_port, broker.http_port) == (stomp, openwire, http)
        assert broker.stomp_url == f"tcp://127.0.0.1:{stomp}"
        assert broker.openwire_url == f"tcp://127.0.0.1:{openwire}"
        assert broker.http_url == f"http://127.0.0.1:{http}"
        for port in (stomp, openwire, http):
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()


def test_a_broker_xml_says_what_the_broker_is(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(BROKER_XML)
    with delosmq.Broker(config=path) as broker:
        assert broker.stomp_port == broker.openwire_port  # one acceptor speaks both
        assert get(broker, "/api/v1/queues/orders")["name"] == "orders"  # by the role that the file names
    port = free_port()
    with delosmq.Broker(config=str(path), stomp_port=port, http=False) as broker:
        assert broker.stomp_port == port
    assert sorted(tmp_path.iterdir()) == [path]  # without a directory nothing is kept


def test_the_groups_of_a_broker_xml_are_left_alone(tmp_path: Path) -> None:
    where = "<group-address>231.7.7.7</group-address><group-port>9876</group-port>"
    groups = (
        '<connectors><connector name="c">tcp://127.0.0.1:1</connector></connectors><broadcast-groups>'
        f'<broadcast-group name="b">{where}<connector-ref>c</connector-ref></broadcast-group></broadcast-groups>'
        f'<discovery-groups><discovery-group name="d">{where}</discovery-group></discovery-groups>'
    )
    path = tmp_path / "broker.xml"
    path.write_text(BROKER_XML.replace("</core>", f"{groups}</core>"))
    settings = chosen_settings(path, None)
    assert settings.acceptors
    assert (settings.broadcast_groups, settings.discovery_groups) == ((), ())


def test_a_broker_xml_with_mistakes_is_refused_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(BROKER_XML.replace("4M", "many"))
    with pytest.raises(ConfigurationError, match=r"broker\.xml:2: "):
        delosmq.Broker(config=path)
    with pytest.raises(ConfigurationError, match=r"none\.xml"):
        delosmq.Broker(config=tmp_path / "none.xml")


def test_settings_that_name_one_part_keep_all_others(tmp_path: Path) -> None:
    journal = JournalSettings(file_size_bytes=4 * 1024 * 1024)
    with delosmq.Broker(tmp_path, settings=BrokerSettings(journal=journal), http=False) as broker:
        assert broker.stomp_port
        settings = broker.composed.settings
        assert settings.journal == replace(journal, directory=str(tmp_path / "journal"))
        assert settings.address_settings == default_settings().address_settings
        assert "DLQ" in broker.composed.broker.queues
    queues = (QueueSettings("orders", "orders"),)
    with delosmq.Broker(settings=BrokerSettings(queues=queues), http=False) as broker:
        assert {"orders", "DLQ"} <= broker.composed.broker.queues.keys()
        assert broker.composed.settings.journal.file_size_bytes == 16 * 1024 * 1024


MATCH = "settings.address_settings[0] (match 'a')"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"stompport": 1}, "Broker has no argument 'stompport'; did you mean 'stomp_port'?"),
    ({"openwire_uri": ""}, "Broker has no argument 'openwire_uri'; did you mean 'openwire_port'?"),
    ({"stomp_port": -1}, "stomp_port of Broker is -1; it must be a port from 0 to 65535"),
    ({"openwire_port": 65536}, "openwire_port of Broker is 65536; it must be a port from 0 to 65535"),
    ({"http_port": "8161"}, "http_port of Broker is '8161'; it must be a port from 0 to 65535"),
    ({"stomp_port": True}, "stomp_port of Broker is True; it must be a port from 0 to 65535"),
    ({"stomp_port": 7, "http_port": 7}, "port 7 is given to acceptor 'stomp' and to HTTP; give each a port of its own"),
    ({"http": "no"}, "http of Broker is 'no'; it must be True or False"),
    ({"user": ""}, "user of Broker is ''; it must be a text that is not empty"),
    ({"password": ""}, "password of Broker is ''; it must be a text that is not empty; None makes a random one"),
    ({"directory": 7}, "directory of Broker is 7; it must be a path, or None for memory only"),
    ({"settings": {}}, "settings of Broker is {}; it must be a delosmq.model.settings.BrokerSettings"),
    ({"config": "a", "settings": BrokerSettings()}, "Broker has both config= and settings=; leave out one of them"),
    ({"events": 1}, "events of Broker is 1; it must be a delosmq.engine.base.events.EngineEvents"),
]
WRONG_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"name": 5}, "settings.name is 5; it must be a text"),
    ({"global_max_size_bytes": "1G"}, "settings.global_max_size_bytes is '1G'; it must be a whole number"),
    ({"global_max_size_bytes": -2}, "settings.global_max_size_bytes is -2; it must be at least -1 (-1 for none)"),
    ({"transaction_timeout_ms": -1}, "settings.transaction_timeout_ms is -1; it must be at least 0"),
    ({"queues": [QueueSettings("a", "a")]}, "it must be a tuple"),
    ({"queues": ("a",)}, "settings.queues[0] is 'a'; it must be a QueueSettings"),
    (
        {"queues": (QueueSettings("a", "a", ring_size=-5),)},
        "settings.queues[0].ring_size is -5; it must be at least -1",
    ),
    (
        {"journal": JournalSettings(file_size_bytes=1000)},
        "settings.journal.file_size_bytes is 1000; it must be from 65536 to 4294967295",
    ),
    (
        {"journal": JournalSettings(file_size_bytes=2**32)},
        "settings.journal.file_size_bytes is 4294967296; it must be from 65536 to 4294967295",
    ),
    (
        {"address_settings": (AddressMatch("a", {"dead_leter_address": "D"}),)},
        f"{MATCH}: there is no address-setting 'dead_leter_address'; did you mean 'dead_letter_address'?",
    ),
    (
        {"address_settings": (AddressMatch("a", {"max-delivery-attempts": 3}),)},
        f"{MATCH}: there is no address-setting 'max-delivery-attempts'; did you mean 'max_delivery_attempts'?",
    ),
    (
        {"address_settings": (AddressMatch("a", {"max_delivery_attempts": "3"}),)},
        f"{MATCH}.max_delivery_attempts is '3'; it must be a whole number",
    ),
    (
        {"address_settings": (AddressMatch("a", {"max_size_bytes": -3}),)},
        f"{MATCH}.max_size_bytes is -3; it must be a size in bytes",
    ),
    (
        {"address_settings": (AddressMatch("a", {"address_full_policy": "FAIL"}),)},
        f"{MATCH}.address_full_policy is 'FAIL'; it must be AddressFullPolicy.PAGE or AddressFullPolicy.BLOCK",
    ),
    (
        {"security_settings": (SecurityMatch("a", {"sent": frozenset({"amq"})}),)},
        "settings.security_settings[0] (match 'a'): there is no permission 'sent'; did you mean 'send'?",
    ),
    (
        {"acceptors": (replace(default_settings().acceptors[0], protocols=("STOMPY",)),)},
        "settings.acceptors[0] ('stomp'): there is no protocol 'STOMPY'; did you mean 'STOMP'?",
    ),
    (
        {"acceptors": (replace(default_settings().acceptors[0], port=70000),)},
        "settings.acceptors[0].port is 70000; it must be from 0 to 65535",
    ),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG)
def test_what_is_wrong_is_one_sentence_at_once(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        delosmq.Broker(**arguments)
    assert sentence in refused.value.message
    assert "\n" not in refused.value.message


WRONG_TYPE = ("settings.name is 5", "settings.global_max_size_bytes is '1G'", "it must be a tuple")


@pytest.mark.parametrize(("fields", "sentence"), WRONG_SETTINGS)
def test_a_wrong_setting_is_one_sentence_at_once(fields: dict[str, Any], sentence: str) -> None:
    if COMPILED and sentence.startswith(WRONG_TYPE):
        with pytest.raises(TypeError, match="expected; got"):  # the settings themselves refuse another type
            BrokerSettings(**fields)
        return
    settings = BrokerSettings(**fields)
    test_what_is_wrong_is_one_sentence_at_once({"settings": settings}, sentence)


def test_the_check_knows_what_the_tuples_of_settings_hold() -> None:
    hints = get_type_hints(AcceptorSettings) | get_type_hints(BrokerSettings)
    for name, element in ELEMENTS.items():
        assert hints[name] == (tuple if COMPILED else tuple[element, ...])  # a compiled class knows no more


def test_all_settings_that_there_are_pass_the_check() -> None:
    from delosmq.config.settings_check import check_settings
    from delosmq.model.settings import AddressSettings

    every = {name: getattr(AddressSettings(), name) for name in AddressSettings.__dataclass_fields__}
    matches = (AddressMatch("#", every),)
    check_settings(replace(default_settings(), address_settings=matches, global_max_size_bytes=-1))


@pytest.mark.parametrize("name", ["connection_ttl_ms", "stomp_consumer_window_bytes", "connections_allowed"])
def test_none_is_written_as_in_broker_xml(name: str) -> None:
    from delosmq.config.settings_check import check_settings

    limits: dict[str, Any] = {name: -1}
    check_settings(BrokerSettings(acceptors=(AcceptorSettings("a", "h", 1, ("STOMP",), **limits),)))


@pytest.mark.parametrize("argument", ["stomp_port", "openwire_port", "http_port"])
def test_a_port_in_use_is_one_sentence(argument: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arguments: dict[str, Any] = {argument: port}
        with pytest.raises(LimitError, match=f"can't listen on 127.0.0.1:{port}: the port is in use; stop the process"):
            delosmq.Broker(**arguments).start()


def test_wrong_passwords_are_refused_as_under_run() -> None:
    with delosmq.Broker(password="tea") as broker:
        assert get(broker, "/api/v1/broker")["version"] == delosmq.__version__
        for password in ("coffee", "te", "tea "):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                get(broker, "/api/v1/broker", password)


def test_the_openapi_document_is_made_when_it_is_first_asked_for_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    document = openapi.document

    def counted(*arguments: Any) -> dict[str, Any]:
        nonlocal made
        made += 1
        return document(*arguments)

    monkeypatch.setattr(http_app, "_DOCUMENTS", {})
    monkeypatch.setattr(openapi, "document", counted)
    with delosmq.Broker() as one, delosmq.Broker() as other:
        assert made == 0
        assert get(one, "/openapi.json") == get(other, "/openapi.json") == get(one, "/openapi.json")
        assert get(one, "/openapi.json")["openapi"] == "3.1.0"
    assert made == 1


def test_a_port_of_http_without_http_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="DMQ6025: Broker has both http=False and http_port=1234; leave out"):
        delosmq.Broker(http=False, http_port=1234)


def test_an_instance_directory_is_refused_and_what_is_told_instead_works(tmp_path: Path) -> None:
    made = create_instance(tmp_path / "instance", stomp_port=0, openwire_port=0, web=WebBind(port=0))
    journal = Path(load_instance(made.paths.root, properties={}).settings.journal.directory)
    with pytest.raises(ConfigurationError, match=r"DMQ6025: .* an instance directory of `delosmq run`; ") as refused:
        delosmq.Broker(made.paths.root)
    assert not (made.paths.root / "journal").exists()
    named = dict(re.findall(r"(directory|config)='([^']+)'", str(refused.value)))
    with delosmq.Broker(named["directory"], config=named["config"]) as broker:
        assert get(broker, "/api/v1/queues")["queues"]
        assert any(journal.iterdir())


def test_nothing_of_uvicorn_reaches_the_log_of_the_program_around(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with delosmq.Broker() as broker, socket.create_connection(("127.0.0.1", broker.http_port)):
        get(broker, "/api/v1/queues")
    logging.getLogger("uvicorn.error").info("of the program around")
    told = [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")]
    assert told == ["of the program around"]


def test_a_random_password_is_letters_and_digits_which_any_command_line_takes() -> None:
    """One that began with a hyphen was taken for an option."""
    assert all(delosmq.Broker(ports=False).password.isalnum() for _ in range(20))
