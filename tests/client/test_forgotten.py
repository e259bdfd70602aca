"""What was not closed is closed when no program can use it any more, and it is said where it was made."""

# TTL-5

import asyncio
import gc
import inspect
import warnings
import weakref
from collections.abc import Callable

import pytest

import delosmq
from delosmq.client import ClientConnection, ConnectionFactory, TimedOutError, connect
from delosmq.client.aio import connect as connect_async
from tests.client.support import wait_for_forgotten


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def forgotten(make: Callable[[], int]) -> tuple[list[str], int]:
    """What is warned of, and the line where it was made."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        where = make()
        gc.collect()
    return [str(one.message) for one in found if one.category is ResourceWarning], where


def test_a_forgotten_connection_is_closed(broker: delosmq.Broker, caplog: pytest.LogCaptureFixture) -> None:
    def make() -> int:
        connect(broker.openwire_url, user=broker.user, password=broker.password, client_id="forgotten")
        return line() - 1

    said, where = forgotten(make)
    assert said == [f"the connection made at {__file__}:{where} was not closed"]
    assert f"DMQ9067: {said[0]}" in caplog.text
    wait_for_forgotten()
    # The broker has heard of it: the id is free again.
    connect(broker.openwire_url, user=broker.user, password=broker.password, client_id="forgotten").close()


def test_a_forgotten_session_is_closed_and_its_messages_go_back(connection: ClientConnection, name: str) -> None:
    def make() -> int:
        session = connection.create_session()
        session.create_consumer(name)
        return line() - 2

    connection.send(name, "x")
    said, where = forgotten(make)
    assert said == [f"the session made at {__file__}:{where} was not closed"]
    assert next(connection.messages(name)).text == "x"


async def test_a_forgotten_connection_of_asyncio_is_closed(broker: delosmq.Broker) -> None:
    connection = await connect_async(broker.openwire_url, user=broker.user, password=broker.password)
    where = line() - 1
    session = await connection.create_session()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        del session
        del connection
        gc.collect()
    said = [str(one.message) for one in found if one.category is ResourceWarning]
    assert sorted(said) == [
        f"the connection made at {__file__}:{where} was not closed",
        f"the session made at {__file__}:{where + 2} was not closed",
    ]
    await asyncio.sleep(0)  # the close begins
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert len(others) == 1
    await asyncio.wait(others)


def test_a_forgotten_factory_has_nothing_to_close_and_its_connection_goes_on(broker: delosmq.Broker, name: str) -> None:
    made: list[ClientConnection] = []
    gone: list[weakref.ref[ConnectionFactory]] = []

    def make() -> int:
        factory = ConnectionFactory(broker.openwire_url, user=broker.user, password=broker.password)
        gone.append(weakref.ref(factory))
        made.append(factory.create_connection())
        return 0

    assert forgotten(make)[0] == []
    assert gone[0]() is None
    with made.pop() as connection:
        connection.start()
        connection.send(name, "x")
        assert next(connection.messages(name, timeout_s=10)).text == "x"


def test_a_forgotten_session_is_closed_though_it_has_a_listener(connection: ClientConnection, name: str) -> None:
    def make() -> int:
        session = connection.create_session()
        session.create_consumer(name).set_listener(lambda message: None)
        return line() - 2

    said, where = forgotten(make)
    assert said == [f"the session made at {__file__}:{where} was not closed"]


def test_what_was_closed_is_not_warned_of(broker: delosmq.Broker) -> None:
    def make() -> int:
        with connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
            connection.create_session().close()
            connection.send("closed.well", "x")
            next(connection.messages("closed.well"))
        return 0

    assert forgotten(make)[0] == []


def test_a_connection_that_waits_for_replies_can_be_forgotten(broker: delosmq.Broker, name: str) -> None:
    def make() -> int:
        connection = connect(broker.openwire_url, user=broker.user, password=broker.password)
        with pytest.raises(TimedOutError):
            connection.request(name, "x", timeout_s=0.01)
        return line() - 3

    said, where = forgotten(make)
    assert said == [f"the connection made at {__file__}:{where} was not closed"]
    wait_for_forgotten()
