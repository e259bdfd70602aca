"""Reads one place of a stream: opens its group, asks for leases, goes on after a loss where that is allowed."""

import time
from collections.abc import Callable
from typing import TypeVar

from delosmq.spark.errors import ForeignIncarnationError, LeaseLostError
from delosmq.spark.lease_client import Group, GroupSummary, LeaseClient, LeaseSummary
from delosmq.spark.lease_requests import GroupWishes
from delosmq.spark.options import SourceOptions
from delosmq.spark.positions import EARLIEST
from delosmq.spark.source.heartbeat import Heartbeat
from delosmq.spark.source.places import Mark, Place

T = TypeVar("T")


class PlaceReader:
    """The group of one place, opened at its first use. Runs on: the source process."""

    def __init__(
        self, options: SourceOptions, place: Place, group: str, *, client: LeaseClient, heartbeat: Heartbeat
    ) -> None:
        self.place = place
        self.name = group
        self._options = options
        self._client = client
        self._heartbeat = heartbeat
        self._group: Group | None = None
        self._until: int | None = None

    def begin(self) -> Mark:
        """Make the group, or take over one of which nothing was ever acknowledged."""
        self._group = self._open(None)
        return Mark(self.name, 0, self._group.incarnation)

    def next(self, start: Mark | None, rows: int, size: int, *, wait_ms: int, bounded: bool) -> Mark:
        """Acknowledge up to `start` and lease what comes next; `start` itself when nothing came in `wait_ms`.

        Args:
            start: None when the place was added to the query.
            rows, size: most messages and bytes.
            bounded: take nothing that came after the first call with it.
        """
        return self._anew(lambda: self._next(start, rows, size, wait_ms, bounded))

    def ready(self, start: Mark | None) -> int:
        """How many messages `next` might lease now; at least 1 when a lease is made already."""
        group, after = self._anew(lambda: self._at(start))
        stat = self.stat()
        if stat is None:
            return 0
        return max(stat.ready, 1 if stat.incarnation == group.incarnation and stat.lease > after else 0)

    def stat(self) -> GroupSummary | None:
        """Where the group stands; None before it is opened, or when it is lost and may be."""
        if self._group is None:
            return None
        return self._unless_lost(lambda: self._client.stat(self.name))

    def commit(self, end: Mark) -> None:
        """Acknowledge up to `end`, if that is of the group's present life."""
        group = self._group
        if group is not None and group.incarnation == end.incarnation:
            self._unless_lost(lambda: self._client.ack(group, end.lease))

    def leases(self, start: Mark | None, end: Mark) -> list[LeaseSummary]:
        """The leases from `start` to `end`."""
        after = start.lease if start is not None and start.incarnation == end.incarnation else 0
        if after == end.lease:
            return []
        return self._unless_lost(lambda: self._described(after, end)) or []

    def _next(self, start: Mark | None, rows: int, size: int, wait_ms: int, bounded: bool) -> Mark:
        group, after = self._at(start)
        if bounded and self._until is None:
            self._until = self._client.stat(self.name).newest_sequence

        def leased(after: int) -> LeaseSummary:
            return self._client.lease(
                group, after, max_rows=rows, max_bytes=size, wait_ms=0 if bounded else wait_ms, until=self._until
            )

        try:
            lease = leased(after)
        except LeaseLostError:
            lost = after if self._options.fail_on_data_loss else self._behind_lost(group, after)
            if lost == after:
                raise
            lease = leased(lost)
        if start is not None and lease.number == after and group.incarnation == start.incarnation:
            return start
        return Mark(self.name, lease.number, group.incarnation)

    def _behind_lost(self, group: Group, after: int) -> int:
        """The last one of the leases behind `after` that the broker's store has lost, as with a damaged file: the group
        lives, and has later ones. `after` when it has not."""
        stat = self._client.stat(self.name)
        if stat.incarnation != group.incarnation:
            return after
        left = self._client.describe(self.name, after, stat.lease, complete=False)
        return left[0].number - 1 if left else max(after, stat.lease)

    def _described(self, after: int, end: Mark) -> list[LeaseSummary]:
        # A group of the same name may be another one by now, with other messages under the same lease numbers.
        if self._client.stat(self.name).incarnation != end.incarnation:
            raise LeaseLostError(
                "DMQ8056",
                f"group {self.name!r} was ended and made anew since the last run of this query: start with a new "
                "checkpoint, or set failOnDataLoss to false",
            )
        return self._client.describe(self.name, after, end.lease, complete=self._options.fail_on_data_loss)

    def _at(self, start: Mark | None) -> tuple[Group, int]:
        """The opened group, and the number of the lease that `start` names in its present life."""
        if self._group is None:
            self._group = self._open(None) if start is None else self._reopen(start.incarnation)
        group = self._group
        if start is None or group.incarnation != start.incarnation:
            return group, 0
        # Of an older checkpoint than the group's, what was acknowledged since is lost.
        lost = group.acked > start.lease and not self._options.fail_on_data_loss
        return group, group.acked if lost else start.lease

    def _reopen(self, incarnation: str) -> Group:
        try:
            return self._open(incarnation)
        except (LeaseLostError, ForeignIncarnationError):
            if self._options.fail_on_data_loss:
                raise
            # The broker still refuses a group that another query has acknowledged anything in.
            return self._open(None)

    def _open(self, incarnation: str | None) -> Group:
        options = self._options
        start = None if options.starting.kind == EARLIEST else options.starting
        newer = "partitionBy" if options.by_group else "maxBodyBytes" if options.max_body_bytes else ""
        wishes = GroupWishes(options.selector, start, newer)
        group = self._client.open_group(self.name, self.place.destination, incarnation, wishes=wishes, sleep=time.sleep)
        self._heartbeat.watch(self.place.broker, group)
        return group

    def _anew(self, call: Callable[[], T]) -> T:
        """What `call` returns; made once more with a new group, where a lost one is allowed."""
        try:
            return call()
        except LeaseLostError:
            if self._options.fail_on_data_loss:
                raise
            self._group = None
            return call()

    def _unless_lost(self, call: Callable[[], T]) -> T | None:
        """What `call` returns; None when the group is lost, where that is allowed."""
        try:
            return call()
        except LeaseLostError:
            if self._options.fail_on_data_loss:
                raise
            return None
