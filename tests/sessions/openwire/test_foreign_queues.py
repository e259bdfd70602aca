"""What a user may not use is refused alike whether it is there or not, and no refusal names a foreign address."""

import pytest

from delosmq.model.message import ANYCAST
from delosmq.model.settings import QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS
from delosmq.wire.openwire.structures import Destination
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import OpenWireBench, queue, throwable, topic
from tests.sessions.support import EVERYTHING

SECRET = SecurityMatch("secret.#", {permission: frozenset({"somebody"}) for permission in PERMISSIONS})
ALL_BUT_SECRETS = (EVERYTHING, SECRET)
THERE, ABSENT = "hidden", "absent"


def bench_with_a_secret() -> OpenWireBench:
    return OpenWireBench(
        queues=(QueueSettings(THERE, "secret.a", ANYCAST), QueueSettings("secret.q", "secret.q", ANYCAST)),
        security=ALL_BUT_SECRETS,
    )


FRAMES = [
    ("SEND", "destination:{}"),
    ("SUBSCRIBE", "id:1", "destination:{}"),
    ("SUBSCRIBE", "id:1", "destination:{}", "browser:true"),
    ("SUBSCRIBE", "id:1", "destination:{}", "subscription-type:MULTICAST"),
    ("SUBSCRIBE", "id:1", "destination:{}", "durable-subscription-name:n"),
]
PLACES = [
    ("/queue/secret.a\\c\\chidden", "/queue/secret.a\\c\\cabsent"),
    ("secret.a\\c\\chidden", "secret.a\\c\\cabsent"),
    ("mine\\c\\chidden", "mine\\c\\cabsent"),
    ("/queue/secret.q", "/queue/secret.n"),
    ("/topic/secret.q", "/topic/secret.n"),
    ("secret.q\\c\\csecret.q", "secret.n\\c\\csecret.n"),
]


def refusal_of_stomp(frame: tuple[str, ...], place: str) -> str:
    bench = bench_with_a_secret()
    bench.broker.resources.create_address("mine", {ANYCAST})
    peer = StompPeer(bench)
    peer.frame(*(part.replace("{}", place) for part in frame))
    errors = [one for one in peer.take() if one.command == "ERROR"]
    if not errors:
        return ""
    return errors[0].headers["message"] + errors[0].body.decode()


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: " ".join(frame[::2]))
@pytest.mark.parametrize(("there", "absent"), PLACES)
def test_stomp_tells_nothing_of_foreign_queues(frame: tuple[str, ...], there: str, absent: str) -> None:
    found = refusal_of_stomp(frame, there)
    other = refusal_of_stomp(frame, absent)
    for name in ("hidden", "absent", "secret.q", "secret.n"):
        found = found.replace(name, "NAME")
        other = other.replace(name, "NAME")
    if not there.startswith("mine"):
        assert found == other
        assert found
    elif frame[0] == "SEND":
        assert found == other
    else:
        assert "secret" not in found  # the name is taken, which nobody can hide who may make queues


def refusal_of_openwire(command: str, destination: Destination) -> str:
    bench = bench_with_a_secret()
    client = bench.connect()
    if command == "send":
        answer = client.call(client.text(destination, "x"))
    else:
        info = client.consumer_info(destination)
        info.browser = command == "browse"
        answer = client.call(info)
    return throwable(answer).message or ""


@pytest.mark.parametrize("command", ["send", "consume", "browse"])
@pytest.mark.parametrize("kind", [queue, topic], ids=["queue", "topic"])
def test_openwire_tells_nothing_of_foreign_queues(command: str, kind: type[Destination]) -> None:
    found = refusal_of_openwire(command, kind("secret.q"))
    assert found.replace("secret.q", "NAME") == refusal_of_openwire(command, kind("secret.n")).replace(
        "secret.n", "NAME"
    )


def test_openwire_does_not_name_the_address_of_a_taken_name() -> None:
    for command in ("send", "consume", "browse"):
        assert "secret" not in refusal_of_openwire(command, queue(THERE))
