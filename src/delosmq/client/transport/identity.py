"""The ids of a connection, unique in the world."""

import os
import secrets
import socket
import time
from itertools import count
from typing import Final

from delosmq.client.options.urls import ConnectionPlan
from delosmq.sessions.openwire.client.handshake import ClientIdentity

_numbers: Final = count(1)


def identity_of(plan: ConnectionPlan) -> ClientIdentity:
    """Ids as the Java client makes them: host, process, time, number."""
    number = next(_numbers)
    unique = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns() // 1_000_000}-{secrets.token_hex(3)}"
    alone = plan.failover is None
    return ClientIdentity(
        f"ID:{unique}-{number}:1",
        f"ID:{unique}-0:{number}",
        plan.user,
        plan.password,
        str(plan),
        plan.addresses[0].host if alone else "",
        fault_tolerant=not alone,
    )
