"""The places that a stream reads, and its offset: how far each of them was read.

A place is one queue or topic of one broker. The offset of one place is ``{"lease": k, "incarnation": id}``: everything
up to lease k of that life of its group. That of several is ``{"version": 2, "places": {KEY: {"group": name, "lease": k,
"incarnation": id}}}``, KEY being the addresses of the broker, a slash and the queue.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delosmq.spark.errors import AnswerError, OptionError
from delosmq.spark.options import SourceDestination, SourceOptions

Offset = dict[str, Any]

OFFSET_VERSION = 2
_KEY = re.compile(r"(https?://[^/,]+(?:,https?://[^/,]+)*)/(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """One queue or topic of one broker.

    Attributes:
        broker: index among `SourceOptions.brokers`.
        first: the first place of its broker, which has the group of the option group.id.
    """

    broker: int
    servers: tuple[str, ...]
    destination: SourceDestination
    first: bool

    @property
    def key(self) -> str:
        """What the place is called in an offset."""
        return f"{','.join(self.servers)}/{self.destination.text}"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a place was read: up to ``lease`` of the life ``incarnation`` of ``group``."""

    group: str
    lease: int
    incarnation: str


Marks = dict[Place, Mark]


def places_of(options: SourceOptions) -> tuple[Place, ...]:
    """All places, in the order of the options: broker by broker."""
    return tuple(
        Place(at, tuple(str(server) for server in broker.servers), destination, number == 0)
        for at, broker in enumerate(options.brokers)
        for number, destination in enumerate(options.destinations)
    )


def group_of(place: Place, marks: Marks, group_id: str) -> str:
    """The name of the group: the one it was read with; of a new place one that no other place of its broker has."""
    if place in marks:
        return marks[place].group
    taken = any(mark.group == group_id for other, mark in marks.items() if other.broker == place.broker)
    return group_id if place.first and not taken else f"{group_id}/{place.destination.text}"


def encode_offset(marks: Marks, group_id: str) -> Offset:
    """The offset for Spark; of one place in the format that it always had."""
    if len(marks) == 1:
        (mark,) = marks.values()
        if mark.group == group_id:
            return {"lease": mark.lease, "incarnation": mark.incarnation}
    told = {
        place.key: {"group": mark.group, "lease": mark.lease, "incarnation": mark.incarnation}
        for place, mark in marks.items()
    }
    return {"version": OFFSET_VERSION, "places": told}


def decode_offset(offset: Mapping[str, Any], places: Sequence[Place], group_id: str, *, may_lose: bool) -> Marks:
    """How far each place was read; places that were added since are not in it.

    Args:
        may_lose: a place that is read no more is left out.

    Raises:
        OptionError: a place is read no more, and may not be lost.
        AnswerError: the checkpoint is of a newer version.
    """
    if "run" in offset:
        raise AnswerError(
            "DMQ8298",
            "the checkpoint is of a query over OpenWire, and servers names a port for HTTP: name tcp:// again, or give "
            "this query a checkpoint of its own",
        )
    if "version" not in offset:
        return {places[0]: Mark(group_id, offset["lease"], offset["incarnation"])}
    if offset["version"] != OFFSET_VERSION:
        raise AnswerError(
            "DMQ8065",
            f"the checkpoint has offsets of version {offset['version']}, and this DelosMQ knows {OFFSET_VERSION} at "
            "most: run the newer DelosMQ that wrote it on Spark's driver and executors",
        )
    marks: Marks = {}
    for key, told in offset["places"].items():
        place = _match(key, offset["places"], places)
        if place is not None:
            marks[place] = Mark(told["group"], told["lease"], told["incarnation"])
        elif not may_lose:
            raise OptionError(
                "DMQ8064",
                f"the checkpoint also reads {key}, which the options servers and subscribe no longer name: name it "
                "again, or set failOnDataLoss to false to go on without it (what its group "
                f"{told['group']!r} holds stays there until that is released)",
            )
    return marks


def _match(key: str, keys: Mapping[str, Any], places: Sequence[Place]) -> Place | None:
    """The place of `key`: the same queue, and one address of the broker is still the same, or there is one broker."""
    parts = _KEY.fullmatch(key)
    if parts is None:
        return None
    servers, text = set(parts[1].split(",")), parts[2]
    one_broker = len({place.broker for place in places}) == 1 and len({_servers(each) for each in keys}) == 1
    for place in places:
        if place.destination.text == text and (one_broker or servers & set(place.servers)):
            return place
    return None


def _servers(key: str) -> str:
    parts = _KEY.fullmatch(key)
    return parts[1] if parts else ""
