"""Leases: the calls of a reader. They are a session of their own; management adds nothing but the login."""

from delosmq.engine.api import EngineBroker
from delosmq.security.access import AccessControl, Login
from delosmq.sessions.lease.session import LeaseSession


class LeaseControl:
    def __init__(self, broker: EngineBroker, access: AccessControl) -> None:
        self._broker = broker
        self._access = access

    def session(self, login: Login) -> LeaseSession:
        """The lease calls with the permissions of ``login``."""
        return LeaseSession(self._broker, self._access, login)
