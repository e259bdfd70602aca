"""The routers of Artemis's manual, what its examples show, and a takeover, with stomp.py; `make interop` has the Java
client do the same."""

# ROUTE-9, CLUS-1, HA-1

from pathlib import Path

import pytest

from interop.routers.clients import StompClient
from interop.routers.programs import PROGRAMS
from interop.routers.site import Site
from tests.server.test_discovery_groups import port as port

pytestmark = [pytest.mark.slow, pytest.mark.sources]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_client_that_follows_finds_its_broker_and_its_messages(program: str, tmp_path: Path, port: int) -> None:
    with Site(tmp_path, StompClient(), port) as site:
        PROGRAMS[program].run(site)
