"""A password is in nothing that Spark shows or keeps: plans, progress, its event log and log, checkpoints, errors."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import delosmq
from delosmq.spark.errors import OptionError
from delosmq.spark.options import parse_options
from delosmq.spark.stock.options import parse_stock_options
from tests.spark.brokers import StompBroker
from tests.spark.processes import PATIENCE_S

CHILD = Path(__file__).with_name("secret_child.py")
SECRET = "pass/w0rd?#@:x"
"""With what separates the parts of a URL."""


@pytest.mark.parametrize("login", [f"me:{SECRET}", "me:pa/w0rd", "me:w0rd,w0rd;w0rd", "me:w0rd", "w0rd"])
def test_a_login_in_servers_is_refused_without_a_word_of_it(login: str):
    for parse, scheme in ((parse_options, "http://"), (parse_options, ""), (parse_stock_options, "tcp://")):
        with pytest.raises(OptionError, match="must not carry a login") as refusal:
            parse({"servers": f"{scheme}{login}@localhost:8161", "subscribe": "q"})
        assert "w0rd" not in str(refusal.value)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_password_is_in_nothing_that_spark_shows_or_keeps(tmp_path: Path):
    events, scratch = tmp_path / "events", tmp_path / "scratch"
    events.mkdir()
    with delosmq.Broker(password=SECRET) as running:
        broker = StompBroker(str(running.http_url), running.stomp_port, running.user, SECRET)
        login = {"user": broker.user, "password": SECRET}
        sources = []
        for name, servers, stream, wrong in (
            ("http", broker.servers, {"group.id": "g"}, {"subscribe": "there.is.no.such.queue"}),
            ("openwire", f"tcp://127.0.0.1:{running.openwire_port}", {}, {"columns": "sequence"}),
        ):
            broker.publish(name, [b"1", b"2"])
            sources.append(
                {
                    "options": {**login, "servers": servers, "subscribe": name},
                    "stream": stream,
                    "wrong": [{"pollTimeoutMs": "soon"}, {"user": "nobody"}, wrong],
                    "checkpoint": str(tmp_path / "checkpoints" / name),
                }
            )
        broker.make_queue("out")
        sink = {**login, "servers": broker.servers, "queue": "out"}
        settings = {"sources": sources, "sink": sink, "events": str(events), "scratch": str(scratch)}
        child = subprocess.run(
            [sys.executable, CHILD, json.dumps(settings)],
            cwd=tmp_path,
            capture_output=True,
            timeout=5 * PATIENCE_S,
            check=False,
        )
    assert child.stdout.endswith(b"done\n"), child.stdout + child.stderr
    kept = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(path.startswith(str(events)) and len(text) > 10_000 for path, text in kept.items())
    assert any("checkpoints/http/offsets" in path for path in kept)
    shown = {"stdout": child.stdout, "stderr": child.stderr, **kept}
    assert {where for where, text in shown.items() if b"w0rd" in text} == set()
