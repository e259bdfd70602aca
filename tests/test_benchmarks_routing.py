"""The stand-ins that connection routers are measured with are targets to a router, and serve its clients."""

import asyncio

from benchmarks.routing import first_message_s, stubs
from delosmq.model.declared.router import ConnectorSettings, TargetPoolSettings
from delosmq.server.targets.stomp_probe import StompProbe

HOST = "127.0.0.1"


async def asked(port: int) -> list[object]:
    """What a router's probe is told."""
    probe = StompProbe(ConnectorSettings("stub", HOST, port), TargetPoolSettings(), None)
    await probe.open()
    try:
        return [await probe.ask(attribute) for attribute in ("NodeID", "Active", "ConnectionCount")]
    finally:
        probe.close()


def test_stubs_answer_a_probe_and_give_a_client_its_first_message() -> None:
    with stubs(2) as ports:
        assert [asyncio.run(asked(port)) for port in ports] == [["stub-0", True, 0], ["stub-1", True, 0]]
        assert all(first_message_s(port, "me") > 0 for port in ports)
