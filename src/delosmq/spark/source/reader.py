"""What all readers share: options that travel to executors, and clients that do not."""

from typing import Any

from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import SourceOptions


class OptionsReader:
    """Options, and one client for each broker, made at its first use in each process. Pickled: the options alone."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self._clients: dict[int, LeaseClient] = {}

    def client_of(self, broker: int) -> LeaseClient:
        """The client of one of `SourceOptions.brokers`."""
        if broker not in self._clients:
            self._clients[broker] = LeaseClient(self.options.brokers[broker])
        return self._clients[broker]

    def close(self) -> None:
        """Drop all connections; the next use makes new ones."""
        for client in self._clients.values():
            client.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        OptionsReader.__init__(self, state["options"])
