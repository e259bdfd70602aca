"""The two forms of the client have the same names: what one reads of one form, one can write in the other."""

import inspect
import re
from pathlib import Path

import pytest

from delosmq import client
from delosmq.client import aio

PAIRS = [
    (client.ClientConnection, aio.AsyncConnection),
    (client.ClientSession, aio.AsyncSession),
    (client.XaSession, aio.AsyncXaSession),
    (client.XaResource, aio.AsyncXaResource),
    (client.MessageProducer, aio.AsyncProducer),
    (client.MessageConsumer, aio.AsyncConsumer),
    (client.QueueBrowser, aio.AsyncBrowser),
    (client.ConnectionFactory, aio.AsyncConnectionFactory),
]
OF_THE_BLOCKING_FORM = {"waits"}
"""Parameters that only the blocking form gives, which may be called in the thread of a listener."""
PAGE = Path(__file__).parents[2] / "docs" / "client.md"

Parameter = tuple[str, object, object]


def methods(kind: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]


def parameters(function: object) -> list[Parameter]:
    assert callable(function)
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in found if one.name not in OF_THE_BLOCKING_FORM]


@pytest.mark.parametrize(
    ("blocking", "asynchronous", "name"), [(*pair, name) for pair in PAIRS for name in methods(pair[0])]
)
def test_each_method_has_its_parameters_in_both_forms(blocking: type, asynchronous: type, name: str) -> None:
    assert parameters(getattr(asynchronous, name)) == parameters(getattr(blocking, name))


def test_connecting_is_the_same_too() -> None:
    assert parameters(aio.connect) == parameters(client.connect)
    assert parameters(aio.AsyncConnectionFactory) == parameters(client.ConnectionFactory)


async def test_each_property_is_there_in_both_forms(aio: aio.AsyncConnection, name: str) -> None:
    async with await aio.create_session() as session, await aio.create_xa_session() as xa:
        objects: list[object] = [aio, session, xa, xa.xa_resource, await session.create_producer(name)]
        objects += [await session.create_consumer(name), await session.create_browser(name)]
        for (blocking, asynchronous), one in zip(PAIRS, objects, strict=False):
            assert type(one) is asynchronous
            for wanted, _ in inspect.getmembers(blocking, lambda member: isinstance(member, property)):
                assert hasattr(one, wanted), f"{asynchronous.__name__} has no {wanted}"


@pytest.mark.sources
def test_each_class_that_the_manual_names_is_where_it_says() -> None:
    named = set(re.findall(r"`(Async\w+)`", PAGE.read_text()))
    assert len(named) >= 8
    assert named <= set(aio.__all__)
    assert all(hasattr(aio, name) for name in aio.__all__)
