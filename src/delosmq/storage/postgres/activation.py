"""Activation by the lease in a database: takeover between the brokers that have the same tables.

The store renews the lease and checks the epoch in each commit, and lets nothing leave while it does not know
(`PostgresStore.may_leave`). What is left for here is who takes the lease, and how one broker asks another to make way.
"""

import json
import time
from typing import Any, Final

from delosmq.model.errors import MisuseError
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import DatabaseStoreSettings
from delosmq.storage.activation import (
    LEASE_NS,
    Activation,
    Attempt,
    PairState,
    Role,
    Verified,
    superseded,
    takes_over,
)
from delosmq.storage.postgres.connection import DatabaseConnection, DatabaseError, whole
from delosmq.storage.postgres.failures import passes, start_failure, where
from delosmq.storage.postgres.schema import prepare
from delosmq.storage.postgres.tables import Tables
from delosmq.storage.postgres.takeover import Takeover, holder_name, take_over
from delosmq.storage.shared_directory import FAILBACK_WITHIN_S

LOOK_EVERY_S: Final = 0.02
"""While a lease that was not renewed in time runs out."""


class PostgresActivation(Activation):
    """One broker of those that share tables.

    Args:
        node_id: of the broker, if the tables are new.
        makes_way: as a backup it stops for a primary.
        configuration: part of the configuration -> digest of what it says, to tell the other broker's apart.

    Attributes:
        takeover: this broker's; None before.
    """

    in_doubt = (
        "what it confirms goes by the lease in its tables, and waits while that can't be renewed: check the database"
    )

    def __init__(
        self,
        settings: DatabaseStoreSettings,
        role: Role,
        *,
        node_id: bytes,
        makes_way: bool = False,
        configuration: dict[str, str] | None = None,
    ) -> None:
        self.role = role
        self.takeover: Takeover | None = None
        self._settings = settings
        self._tables = Tables(settings)
        self._node_id = node_id
        self._name = f"{role.value} on {holder_name()}"
        self._configuration = configuration or {}
        self._makes_way = makes_way
        self._connection: DatabaseConnection | None = None
        self._prepared = False
        self._making_way_since: float | None = None
        self._asked_in = 0
        # A lease with less than this left has missed a renewal.
        self._doubtful_ms = settings.lock_expiration_ms - settings.lock_renew_period_ms * 3 // 2

    def attempt(self) -> Attempt:
        try:
            return self._attempt()
        except DatabaseError as error:
            raise self._met(error) from error

    def _attempt(self) -> Attempt:
        connection = self._connected()
        if not self._prepared:
            prepare(self._tables, connection, self._node_id)
            self._prepared = True
        while True:
            epoch, state, before, left_ms = self._look(connection)
            allowed = takes_over(self.role, state) or self._primary_is_gone(state)
            if allowed and left_ms <= 0:
                takeover = self._take_over(connection, epoch, state)
                if takeover is not None:
                    differences = self._differences(before) if epoch else ()
                    return Attempt(True, takeover.lease.epoch, state, str(before.get("name", "")), differences)
            elif not allowed or left_ms > self._doubtful_ms:
                self._ask_to_make_way(connection, epoch, before)
                return Attempt(False, epoch, state, str(before.get("name", "")))
            time.sleep(LOOK_EVERY_S)

    def _look(self, connection: DatabaseConnection) -> tuple[int, PairState, dict[str, Any], int]:
        epoch, state, record, left_ms = connection.run(self._tables.pair)[0]
        before: dict[str, Any] = json.loads(record or b"{}")
        return whole(epoch), PairState((state or b"").decode()), before, whole(left_ms)

    def _take_over(self, connection: DatabaseConnection, epoch: int, state: PairState) -> Takeover | None:
        record = {"name": self._name, "makes_way": self._makes_way, "configuration": self._configuration}
        found = take_over(connection, self._tables, self._settings, json.dumps(record), (epoch, state.value))
        if found is not None:
            self.takeover = found
        return found

    def _ask_to_make_way(self, connection: DatabaseConnection, epoch: int, before: dict[str, Any]) -> None:
        if self.role is Role.PRIMARY and before.get("makes_way") is True and self._asked_in != epoch:
            connection.run(self._tables.say, PairState.FAILING_BACK.value, epoch)
            self._asked_in = epoch

    def _primary_is_gone(self, state: PairState) -> bool:
        """Whether a primary that asked a backup to make way has not become active for long."""
        if state is not PairState.FAILING_BACK:
            self._making_way_since = None
            return False
        now = time.monotonic()
        if self._making_way_since is None:
            self._making_way_since = now
        return now - self._making_way_since >= FAILBACK_WITHIN_S

    def _differences(self, before: dict[str, Any]) -> tuple[str, ...]:
        mine, theirs = self._configuration, before.get("configuration", {})
        return tuple(sorted(part for part in mine.keys() & theirs.keys() if mine[part] != theirs[part]))

    def verify(self, now: MonotonicNs) -> Verified:
        mine = self._epoch()
        try:
            epoch, state, present, _ = self._look(self._connected())
        except DatabaseError as error:
            raise self._met(error) from error
        if epoch != mine:
            raise superseded(where(self._settings), mine, epoch, str(present.get("name", "")))
        return Verified(MonotonicNs(now + LEASE_NS), self._makes_way and state is PairState.FAILING_BACK)

    def give_up(self, state: PairState) -> None:
        try:
            self._connected().run(self._tables.give_up_as, state.value, self._epoch())
        except DatabaseError as error:
            raise self._met(error) from error
        finally:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _epoch(self) -> int:
        if self.takeover is None:
            raise MisuseError("DMQ3086", "a broker that has not taken the tables over can't give them up")
        return self.takeover.lease.epoch

    def _connected(self) -> DatabaseConnection:
        if self._connection is None:
            self._connection = DatabaseConnection(self._settings)
        return self._connection

    def _met(self, error: DatabaseError) -> Exception:
        self.close()
        return OSError(error.sentence) if passes(error) else start_failure(error, self._settings)
