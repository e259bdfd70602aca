"""The pytest plugin: what is found in a run of pytest without any configuration."""

import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from delosmq.testing import plugin
from tests.testing.support import run_pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
SEND_AND_WAIT = """
import socket


def send(broker, text):
    login = f"login:{broker.user}\\npasscode:{broker.password}"
    frames = f"CONNECT\\naccept-version:1.2\\nhost:h\\n{login}\\n\\n\\0SEND\\ndestination:/queue/tea\\n\\n{text}\\0"
    with socket.create_connection((broker.host, broker.stomp_port)) as peer:
        peer.sendall(frames.encode())
        broker.queue("tea").wait_for(messages=1)
"""
LOADED = "import sys; print(*sorted(name for name in sys.modules if name.startswith('delosmq')))"


def test_the_plugin_loads_no_broker() -> None:
    program = f"import delosmq.testing.plugin; {LOADED}"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["delosmq", "delosmq.testing", "delosmq.testing.plugin", "delosmq.version"]


@pytest.mark.sources
def test_pytest_is_told_of_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"delosmq": "delosmq.testing.plugin"}
    assert project["optional-dependencies"]["test"] == ["pytest>=8.3"]


def test_pytest_does_not_compile_the_broker_anew() -> None:
    marked = {"delosmq", "another_plugin"}
    for hook in ({"_must_rewrite": marked}, {}):
        manager = SimpleNamespace(rewrite_hook=SimpleNamespace(**hook))
        plugin.pytest_load_initial_conftests(SimpleNamespace(pluginmanager=manager))  # type: ignore[arg-type]
    assert marked == {"another_plugin"}


def test_pytest_has_the_marks_that_the_plugin_takes_back(pytestconfig: pytest.Config) -> None:
    assert isinstance(vars(pytestconfig.pluginmanager.rewrite_hook)["_must_rewrite"], set)


def test_fixtures_are_found_without_configuration(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SEND_AND_WAIT
        + """
import sys


def test_no_broker_is_loaded_before_a_fixture_is_used():
    assert "delosmq.embedded" not in sys.modules


def test_a_broker_of_its_own(broker):
    send(broker, "one pot")


def test_another_one(broker):
    assert not broker.queue("tea").exists


def test_a_durable_one(durable_broker, tmp_path):
    assert (tmp_path / "broker" / "journal").is_dir()
    send(durable_broker, "one pot")
    durable_broker.crash()
    durable_broker.start()


class TestOneOfTheModule:
    url = ""

    def test_first(self, module_broker):
        send(module_broker, "one pot")
        TestOneOfTheModule.url = module_broker.stomp_url

    def test_second(self, module_broker, whole_module_broker):
        assert not module_broker.queue("tea").exists
        assert module_broker.stomp_url == self.url
        assert module_broker is whole_module_broker


class TestOneOfTheSession:
    url = ""

    def test_first(self, session_broker):
        send(session_broker, "one pot")
        TestOneOfTheSession.url = session_broker.stomp_url

    def test_second(self, session_broker, whole_session_broker):
        assert not session_broker.queue("tea").exists
        assert session_broker.stomp_url == self.url
        assert session_broker is whole_session_broker


async def test_in_a_running_loop(broker):
    send(broker, "one pot")
    await broker.queue("tea").wait_for_async(messages=1)
"""
    )
    run_pytest(pytester, "-p", "no:randomly", "-o", "asyncio_mode=auto").assert_outcomes(passed=9)


def test_they_work_in_several_processes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SEND_AND_WAIT
        + """
import pytest


@pytest.mark.parametrize("number", range(8))
def test_one(broker, session_broker, number):
    send(broker, "one pot")
    send(session_broker, "one pot")


@pytest.mark.parametrize("number", range(4))
def test_client(broker_client, broker, number):
    broker_client.send("tea", "one pot")
    broker.queue("tea").assert_has(messages=1)
"""
    )
    run_pytest(pytester, "-n", "2").assert_outcomes(passed=12)


def test_a_suite_says_how_its_brokers_are(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
import pytest


@pytest.fixture(scope="session")
def broker_options():
    return {"user": "app", "password": "tea"}
"""
    )
    pytester.makepyfile(
        """
def test_one(broker, session_broker):
    assert (broker.user, broker.password, session_broker.user) == ("app", "tea", "app")
"""
    )
    run_pytest(pytester).assert_outcomes(passed=1)


def test_a_failure_says_what_is_in_the_queue(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SEND_AND_WAIT
        + """
def test_one(broker):
    send(broker, "one pot")
    broker.queue("tea").assert_has(messages=2)
"""
    )
    found = run_pytest(pytester)
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["E*queue 'tea' does not have messages=2; it has messages=1*", "E*'one pot'"])
    assert "queue_view.py" not in found.stdout.str()
