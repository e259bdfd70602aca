"""The client is light: importing it loads nothing of the broker, and next to nothing at all."""

import subprocess
import sys

ALLOWED = ("delosmq.client", "delosmq.model", "delosmq.wire.openwire", "delosmq.sessions.openwire.client")
PACKAGES = {
    "delosmq",
    "delosmq.version",
    "delosmq.in_process",
    "delosmq.wire",
    "delosmq.wire.decoder",
    "delosmq.wire.first_bytes",
    "delosmq.sessions",
    "delosmq.sessions.client_errors",
    "delosmq.sessions.openwire",
}


def loaded(program: str) -> set[str]:
    shown = f"import sys\n{program}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_importing_it_loads_names_alone() -> None:
    modules = loaded("import delosmq.client")
    assert {name for name in modules if name.startswith("delosmq")} == {"delosmq", "delosmq.version", "delosmq.client"}
    assert not modules & {"asyncio", "ssl", "socket", "dataclasses", "urllib.parse", "logging"}


def test_all_of_it_loads_no_broker() -> None:
    modules = loaded(
        "import delosmq, delosmq.client, delosmq.client.aio\n"
        "[getattr(delosmq.client, name) for name in delosmq.client.__all__]\nassert delosmq.connect"
    )
    ours = {name for name in modules if name.startswith("delosmq.")} - PACKAGES
    assert {name for name in ours if not name.startswith(ALLOWED)} == set()
    assert not modules & {"pydantic", "starlette", "uvicorn", "typer", "lark", "lxml", "argon2", "prometheus_client"}
