"""Distributed transactions: branches that a coordinator ends, at one broker or at two."""

# ACK-5

import asyncio
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import delosmq
from delosmq.client import (
    ClientConnection,
    ClientOptionError,
    IllegalStateError,
    UnsupportedOperationError,
    XaFlag,
    XaSession,
    XaTransactionError,
    Xid,
    connect,
)
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio import connect as connect_async
from delosmq.model.errors import XA_RBINTEGRITY, XAER_INVAL, XAER_NOTA, XAER_PROTO, XAER_RMFAIL
from delosmq.testing import BrokerFixture, TcpProxy
from tests.patience import PATIENCE_S

_numbers = count(1)


@pytest.fixture
def xid(name: str) -> Xid:
    return new_xid(name)


def new_xid(name: str) -> Xid:
    return Xid(7, f"{name}-{next(_numbers)}".encode()[-64:], b"branch")


@pytest.fixture
def connection(broker: delosmq.Broker) -> Iterator[ClientConnection]:
    url = f"{broker.openwire_url}?jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0"
    with connect(url, user=broker.user, password=broker.password) as made:
        yield made


@pytest.fixture
def session(connection: ClientConnection) -> Iterator[XaSession]:
    with connection.create_xa_session() as made:
        yield made


def received(session: XaSession, name: str, number: int = 1) -> list[str]:
    with session.create_consumer(name) as consumer:
        return [message.text for _ in range(number) if (message := consumer.receive(PATIENCE_S)) is not None]


def left(connection: ClientConnection, name: str) -> list[str]:
    with connection.create_session() as other:
        return [message.text for message in other.create_browser(name)]


def refused(work: Callable[[], object]) -> int:
    with pytest.raises(XaTransactionError) as caught:
        work()
    return caught.value.error_code


def test_what_a_branch_has_done_happens_with_its_commit(
    connection: ClientConnection, session: XaSession, name: str, xid: Xid
) -> None:
    connection.send(f"{name}.in", "a")
    resource = session.xa_resource
    resource.start(xid)
    assert received(session, f"{name}.in") == ["a"]
    session.create_producer(f"{name}.out").send("b")
    resource.end(xid)
    assert left(connection, f"{name}.out") == []
    assert resource.prepare(xid)
    assert xid in resource.recover()
    assert left(connection, f"{name}.out") == []
    resource.commit(xid)
    assert xid not in resource.recover()
    assert left(connection, f"{name}.out") == ["b"]
    assert left(connection, f"{name}.in") == []


def test_one_phase_and_nothing_to_do(connection: ClientConnection, session: XaSession, name: str, xid: Xid) -> None:
    resource = session.xa_resource
    resource.start(xid)
    session.create_producer(name).send("a")
    resource.end(xid)
    resource.commit(xid, one_phase=True)
    assert left(connection, name) == ["a"]
    idle = new_xid(name)
    resource.start(idle)
    resource.end(idle)
    assert not resource.prepare(idle)
    assert refused(lambda: resource.commit(idle)) == XAER_NOTA


@pytest.mark.parametrize("prepared", [False, True])
def test_a_branch_that_is_rolled_back_is_delivered_again_and_others_are_not(
    connection: ClientConnection, session: XaSession, name: str, prepared: bool
) -> None:
    for text in ("a", "b", "c"):
        connection.send(name, text)
    resource = session.xa_resource
    back, forward, last = new_xid(name), new_xid(name), new_xid(name)
    consumer = session.create_consumer(name)
    seen = []
    for xid in (back, forward):
        resource.start(xid)
        message = consumer.receive(PATIENCE_S)
        assert message is not None
        seen.append((message.text, message.delivery_count))
        resource.end(xid)
        if prepared:
            resource.prepare(xid)
    resource.rollback(back)
    resource.commit(forward, one_phase=not prepared)
    resource.start(last)
    for _ in range(2):
        message = consumer.receive(PATIENCE_S)
        assert message is not None
        seen.append((message.text, message.delivery_count))
    resource.end(last)
    resource.commit(last, one_phase=True)
    assert seen == [("a", 1), ("b", 1), ("a", 2), ("c", 1)]
    assert left(connection, name) == []


def test_a_branch_may_be_rolled_back_while_its_session_works_in_it(
    connection: ClientConnection, session: XaSession, name: str, xid: Xid
) -> None:
    resource = session.xa_resource
    resource.start(xid)
    session.create_producer(name).send("never")
    resource.rollback(xid)
    again = new_xid(name)
    resource.start(again)
    session.create_producer(name).send("once")
    resource.end(again, XaFlag.SUSPEND)
    resource.start(again, XaFlag.RESUME)
    session.create_producer(name).send("more")
    resource.end(again)
    resource.commit(again, one_phase=True)
    assert left(connection, name) == ["once", "more"]


def test_a_prepared_branch_outlives_the_broker_and_is_ended_by_another_client(tmp_path: Path, xid: Xid) -> None:
    with delosmq.Broker(tmp_path / "data", ports=False) as durable:
        login = durable.user, durable.password
        with connect(durable.vm_url, user=login[0], password=login[1]) as connection:
            with connection.create_xa_session() as session:
                session.xa_resource.start(xid)
                session.create_producer("orders").send("a")
                session.xa_resource.end(xid)
                assert session.xa_resource.prepare(xid)
        durable.restart()
        with connect(durable.vm_url, user=login[0], password=login[1]) as connection:
            with connection.create_xa_session() as session:
                assert session.xa_resource.recover() == [xid]
                session.xa_resource.commit(xid)
            assert left(connection, "orders") == ["a"]


def test_two_sessions_work_in_one_branch(connection: ClientConnection, session: XaSession, name: str, xid: Xid) -> None:
    with connection.create_xa_session() as other:
        for number, one in enumerate((session, other)):
            one.xa_resource.start(xid, XaFlag.JOIN if number else XaFlag.NO_FLAGS)
            one.create_producer(name).send(f"m{number}")
        for one in (session, other):
            one.xa_resource.end(xid)
        other.xa_resource.commit(xid, one_phase=True)
    assert left(connection, name) == ["m0", "m1"]


def test_what_another_connection_has_rolled_back_is_delivered_again_here(
    broker: delosmq.Broker, connection: ClientConnection, session: XaSession, name: str, xid: Xid
) -> None:
    connection.send(name, "a")
    consumer = session.create_consumer(name)
    session.xa_resource.start(xid)
    assert consumer.receive(PATIENCE_S) is not None
    session.xa_resource.end(xid)
    assert session.xa_resource.prepare(xid)
    with connect(broker.openwire_url, user=broker.user, password=broker.password) as coordinator:
        with coordinator.create_xa_session() as other:
            other.xa_resource.rollback(xid)
    again = new_xid(name)
    session.xa_resource.start(again)
    message = consumer.receive(PATIENCE_S)
    assert message is not None
    assert (message.text, message.delivery_count) == ("a", 2)
    session.xa_resource.end(again)
    session.xa_resource.commit(again, one_phase=True)
    assert left(connection, name) == []


@pytest.mark.parametrize("committed", [True, False])
async def test_a_consumer_that_was_closed_in_a_branch_ends_when_another_connection_ends_it(committed: bool) -> None:
    with BrokerFixture(ports=False) as kit:
        async with kit.connect_async() as ours, kit.connect_async() as theirs:
            await ours.send("orders", "a")
            xid = new_xid("closing")
            session = await ours.create_xa_session()
            await session.xa_resource.start(xid)
            async with await session.create_consumer("orders") as consumer:
                assert await consumer.receive(PATIENCE_S) is not None
            await session.xa_resource.end(xid)
            other = await theirs.create_xa_session()
            if committed:
                await other.xa_resource.commit(xid, one_phase=True)
            else:
                await other.xa_resource.rollback(xid)
            await kit.queue("orders").wait_for_async(consumers=0, messages=0 if committed else 1)


def test_a_session_that_is_closed_rolls_its_branch_back(
    connection: ClientConnection, session: XaSession, name: str, xid: Xid
) -> None:
    session.xa_resource.start(xid)
    session.create_producer(name).send("never")
    session.close()
    with connection.create_xa_session() as other:
        assert refused(lambda: other.xa_resource.commit(xid, one_phase=True)) == XAER_NOTA
    assert left(connection, name) == []


def test_a_consumer_that_is_closed_in_a_branch_ends_with_it(
    connection: ClientConnection, session: XaSession, name: str, xid: Xid
) -> None:
    connection.send(name, "a")
    resource = session.xa_resource
    resource.start(xid)
    assert received(session, name) == ["a"]
    resource.end(xid)
    resource.rollback(xid)
    with connection.create_session() as other:
        again = other.create_consumer(name).receive(PATIENCE_S)
        assert again is not None
        assert (again.text, again.redelivered) == ("a", True)


def test_wrong_order_is_refused(session: XaSession, name: str, xid: Xid) -> None:
    resource = session.xa_resource
    other = new_xid(name)
    consumer = session.create_consumer(name)
    with pytest.raises(IllegalStateError, match="DMQ9017: the session works in no branch"):
        consumer.receive(0)
    for end in (session.commit, session.rollback):
        with pytest.raises(IllegalStateError, match=r"DMQ9015: (commit|rollback)\(\) is not for"):
            end()
    assert refused(lambda: resource.end(xid)) == XAER_PROTO
    assert refused(lambda: resource.commit(xid)) == XAER_NOTA
    resource.start(xid)
    assert refused(lambda: resource.start(other)) == XAER_PROTO
    assert refused(lambda: resource.end(other)) == XAER_PROTO
    assert refused(lambda: resource.end(xid, XaFlag.JOIN)) == XAER_INVAL
    assert refused(lambda: resource.prepare(xid)) == XAER_PROTO
    assert refused(lambda: resource.commit(xid)) == XAER_PROTO
    resource.end(xid, XaFlag.FAIL)
    assert refused(lambda: resource.prepare(xid)) == XA_RBINTEGRITY
    resource.rollback(xid)
    assert refused(lambda: resource.forget(xid)) == XAER_NOTA
    with pytest.raises(ClientOptionError, match=r"DMQ9056: flags is .*, but must be NO_FLAGS, JOIN or RESUME\."):
        resource.start(xid, XaFlag.FAIL)
    for parts in ((b"", b""), (b"x" * 65, b""), (b"x", b"x" * 65)):
        with pytest.raises(ClientOptionError, match="DMQ9056"):
            Xid(1, *parts)


async def test_a_listener_waits_for_a_branch(aio: AsyncConnection, name: str, xid: Xid) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with await aio.create_xa_session() as session:
        consumer = await session.create_consumer(name)
        await consumer.set_listener(lambda message: heard.put_nowait(message.text))
        await aio.send(name, "a")
        assert heard.empty()
        await session.xa_resource.start(xid)
        assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "a"
        await session.xa_resource.end(xid)
        await session.xa_resource.commit(xid, one_phase=True)


async def test_what_was_not_prepared_when_the_connection_broke_can_only_be_rolled_back(
    broker: delosmq.Broker, name: str
) -> None:
    with TcpProxy(broker.openwire_port) as proxy:
        url = f"failover:(tcp://127.0.0.1:{proxy.port})?initialReconnectDelay=1&maxReconnectDelay=5"
        async with connect_async(url, user=broker.user, password=broker.password) as connection:
            session = await connection.create_xa_session()
            resource = session.xa_resource
            producer = await session.create_producer(name)
            prepared, ended, sent = new_xid(name), new_xid(name), new_xid(name)
            for xid in (prepared, ended, sent):
                await resource.start(xid)
                await producer.send("x")
                if xid is not sent:
                    await resource.end(xid)
                if xid is prepared:
                    assert await resource.prepare(xid)
            proxy.cut()
            await connection.send(f"{name}.other", "again there")
            # The one in which the session works is told to the broker again.
            await resource.end(sent)
            await resource.commit(sent, one_phase=True)
            with pytest.raises(XaTransactionError) as caught:
                await resource.prepare(ended)
            assert caught.value.error_code == XA_RBINTEGRITY
            await resource.commit(prepared)
            async with await connection.create_session() as other:
                consumer = await other.create_consumer(name)
                found = [await consumer.receive(PATIENCE_S) for _ in range(2)]
                assert [None if one is None else one.text for one in found] == ["x", "x"]
                assert await consumer.receive(0) is None


async def test_a_prepare_whose_answer_does_not_come_tells_that_the_broker_is_gone(
    broker: delosmq.Broker, name: str, xid: Xid
) -> None:
    with TcpProxy(broker.openwire_port) as proxy:
        url = f"failover:(tcp://127.0.0.1:{proxy.port})?initialReconnectDelay=1&maxReconnectDelay=5"
        async with connect_async(url, user=broker.user, password=broker.password) as connection:
            session = await connection.create_xa_session()
            resource = session.xa_resource
            await resource.start(xid)
            await (await session.create_producer(name)).send("x")
            await resource.end(xid)
            proxy.blackhole(to_server=False)  # else the answer may overtake the end
            preparing = asyncio.ensure_future(resource.prepare(xid))
            await asyncio.sleep(0)
            proxy.cut()
            proxy.restore()
            with pytest.raises(XaTransactionError) as caught:
                await preparing
            assert caught.value.error_code == XAER_RMFAIL


def test_shared_subscriptions_are_refused_with_what_does_the_same(connection: ClientConnection, name: str) -> None:
    with connection.create_session() as session:
        for create in (session.create_shared_consumer, session.create_shared_durable_consumer):
            with pytest.raises(UnsupportedOperationError, match="DMQ9073: OpenWire has no shared subscriptions"):
                create("topic://prices", "workers")
        shared = f"topic://{name}::workers?consumer.prefetchSize=1"
        consumers = [session.create_consumer(shared) for _ in range(2)]
        for number in range(4):
            connection.send(f"topic://{name}", f"m{number}")
        seen = [message.text for _ in range(2) for one in consumers if (message := one.receive(PATIENCE_S)) is not None]
        assert sorted(seen) == ["m0", "m1", "m2", "m3"]
        assert [one.receive(0) for one in consumers] == [None, None]


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (("7", b"t"), "format_id is '7', but must be a whole number from -2147483648 to 2147483647"),
        ((2**31, b"t"), "format_id is 2147483648"),
        ((1, "t"), "global_transaction_id is 't', but must be bytes, 1 to 64 of them"),
        ((1, None), "global_transaction_id is None"),
        ((1, b"t", "b"), "branch_qualifier is 'b', but must be bytes, 0 to 64 of them"),
        ((1, b"t", b"b" * 65), "branch_qualifier is b'bbb"),
    ],
)
def test_a_part_of_an_xid_that_is_of_another_type_is_named(parts: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(ClientOptionError, match=f"DMQ9056: {re.escape(sentence)}"):
        Xid(*parts)


def test_an_argument_of_another_type_is_named_and_the_branch_goes_on(session: XaSession, name: str, xid: Xid) -> None:
    resource: Any = session.xa_resource
    for of_xid in (resource.start, resource.end, resource.prepare, resource.commit, resource.rollback, resource.forget):
        for no_xid in ("branch", None, b"branch", (1, b"t", b"b")):
            with pytest.raises(ClientOptionError, match=r"DMQ9056: xid is .*, but must be an Xid"):
                of_xid(no_xid)
    no_flags: tuple[Any, ...] = ("FAIL", None, 0.5, [])
    for wrong in no_flags:
        with pytest.raises(ClientOptionError, match=r"DMQ9056: flags is .*, but must be NO_FLAGS, JOIN or RESUME"):
            resource.start(xid, wrong)
    resource.start(xid)
    session.create_producer(name).send("one pot of tea")
    for wrong in no_flags:
        with pytest.raises(ClientOptionError, match=r"DMQ9056: flags is .*, but must be SUCCESS, FAIL or SUSPEND"):
            resource.end(xid, wrong)
    resource.end(xid)
    with pytest.raises(ClientOptionError, match="DMQ9056: one_phase is 1, but must be True or False"):
        resource.commit(xid, one_phase=1)
    resource.commit(xid, one_phase=True)


def test_a_session_has_one_resource(connection: ClientConnection) -> None:
    with connection.create_xa_session() as session:
        assert session.xa_resource is session.xa_resource
