"""A target: a broker that a router may choose."""

from delosmq.model.declared.router import ConnectorSettings


class RouterTarget:
    """One broker.

    Attributes:
        connector: where it is; None for this broker.
        node_id: "" until it was asked.
        ready: whether the last check found it active.
        connection_count: what the last check found; None when it is not known.
        sent: connections that were given it since that check.
        trouble: why it is not ready, for people.
    """

    def __init__(self, connector: ConnectorSettings | None, node_id: str = "") -> None:
        self.connector = connector
        self.node_id = node_id
        self.ready: bool = False
        self.connection_count: int | None = None
        self.sent: int = 0
        self.trouble: str = "not asked yet"

    @property
    def name(self) -> str:
        """For logs: the connector's name with host and port."""
        one = self.connector
        return "this broker" if one is None else f"{one.name} ({one.host}:{one.port})"
