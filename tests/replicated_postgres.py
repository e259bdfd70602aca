"""PostgreSQL's synchronous replication: a primary and its standby, which takes the place of a primary that dies."""

from tests.postgres_server import PostgresServer


class ReplicatedPostgres:
    """What one server confirms is on the disks of both.

    Attributes:
        primary, standby: as they are now.
    """

    def __init__(self) -> None:
        self.primary = PostgresServer("synchronous_standby_names=*")
        self._made = [self.primary]
        try:
            self.primary.start()
            self.standby = PostgresServer("synchronous_standby_names=*", standby_of=self.primary)
            self._made.append(self.standby)
            self.standby.start()
        except BaseException:
            self.remove()
            raise

    def schema(self) -> str:
        return self.primary.schema()

    def url(self, schema: str) -> str:
        """Of whichever is the primary."""
        return self.primary.url(schema, self.standby)

    def kill(self) -> None:
        """The primary is gone for good."""
        self.primary.kill()

    def start(self) -> None:
        """The standby is promoted, and gets one of its own in place of the server that is gone."""
        self.primary, self.standby = self.standby, self.primary
        self.primary.promote()
        self.standby.follow(self.primary)
        self.standby.start()

    def remove(self) -> None:
        for server in self._made:
            server.remove()
