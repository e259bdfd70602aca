"""The tea shop loses no order and sends no invoice twice, whatever fails. The fixtures come with delosmq[test]."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import pytest

from delosmq.client import ClientConnection
from delosmq.testing import BrokerFixture, BrokerOptions
from examples.tea_shop.__main__ import CONFIG, parsed, run
from examples.tea_shop.dead_letters import retry_dead, texts_in
from examples.tea_shop.messages import DEAD_ORDERS, INVOICES, ORDERS, Invoice, Order
from examples.tea_shop.pricing import MENU, serve_prices
from examples.tea_shop.worker import OrderWorker, connect

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60.0
TEA = Order("o-1", "tea", 2)
TEA_INVOICE = Invoice("o-1", 700)


@pytest.fixture(scope="session")
def broker_options() -> BrokerOptions:
    """The settings of production, on a free port."""
    return {"config": CONFIG, "openwire_port": 0}


class Shop:
    """A connection each for the customer, the pricing service and the worker."""

    def __init__(self, broker: BrokerFixture, stack: ExitStack) -> None:
        self._broker = broker
        self._stack = stack
        self.customer = self.connect()
        self.worker = OrderWorker(self.connect())
        self.worker.price_timeout_s = WAIT_S

    def connect(self) -> ClientConnection:
        broker = self._broker
        return self._stack.enter_context(connect(broker.openwire_url, broker.user, broker.password))

    def open_prices(self, price_of: Callable[[str], int] = MENU.__getitem__) -> None:
        self._stack.enter_context(serve_prices(self.connect(), price_of))

    def order(self, order: Order) -> None:
        self.customer.send(ORDERS, order.to_json())

    def lose_patience(self) -> None:
        """Has the worker handle an order, without waiting for long until it has the price."""
        self.worker.price_timeout_s = 0.05
        assert self.worker.handle_next(WAIT_S)
        self.worker.price_timeout_s = WAIT_S

    def invoices(self) -> list[Invoice]:
        return [Invoice.from_json(text) for text in self._broker.queue(INVOICES).texts]


@pytest.fixture
def shop(broker: BrokerFixture) -> Iterator[Shop]:
    with ExitStack() as stack:
        yield Shop(broker, stack)


@pytest.fixture
def durable_shop(durable_broker: BrokerFixture) -> Iterator[Shop]:
    with ExitStack() as stack:
        yield Shop(durable_broker, stack)


def test_an_order_becomes_an_invoice(shop: Shop, broker: BrokerFixture) -> None:
    shop.open_prices()
    shop.order(TEA)
    assert shop.worker.handle_next(WAIT_S)
    assert shop.invoices() == [TEA_INVOICE]
    broker.queue(ORDERS).assert_has(messages=0)


def test_while_no_prices_are_to_be_had_an_order_waits_five_minutes(shop: Shop, broker: BrokerFixture) -> None:
    shop.order(TEA)
    shop.lose_patience()
    broker.queue(ORDERS).assert_has(messages=1)
    shop.open_prices()
    broker.clock.advance(minutes=4)
    assert not shop.worker.handle_next(0)
    broker.clock.advance(minutes=1)
    assert shop.worker.handle_next(0)
    assert shop.invoices() == [TEA_INVOICE]


def test_an_order_that_waits_holds_up_no_other(shop: Shop) -> None:
    shop.open_prices()
    shop.order(Order("o-0", "coffee", 1))
    shop.order(TEA)
    assert shop.worker.handle_next(WAIT_S)
    assert shop.worker.handle_next(WAIT_S)
    assert shop.invoices() == [TEA_INVOICE]


def test_a_price_that_comes_too_late_is_not_taken_for_another_one(shop: Shop, broker: BrokerFixture) -> None:
    looked_up = threading.Event()

    def slow_for_cups(item: str) -> int:
        if item == "cup":
            looked_up.wait(WAIT_S)
        return MENU[item]

    shop.open_prices(slow_for_cups)
    shop.order(Order("o-0", "cup", 1))
    shop.lose_patience()
    looked_up.set()
    shop.order(TEA)
    assert shop.worker.handle_next(WAIT_S)
    broker.clock.advance(minutes=5)
    assert shop.worker.handle_next(0)
    assert shop.invoices() == [TEA_INVOICE, Invoice("o-0", 900)]


@pytest.mark.parametrize("text", [Order("o-0", "coffee", 1).to_json(), Order("o-0", "tea", -1).to_json(), "tea", "{}"])
def test_what_fails_three_times_is_a_dead_letter(text: str, shop: Shop, broker: BrokerFixture) -> None:
    shop.open_prices()
    shop.customer.send(ORDERS, text)
    assert shop.worker.handle_next(WAIT_S)
    for _ in range(2):
        broker.clock.advance(minutes=5)
        assert shop.worker.handle_next(0)
    broker.queue(DEAD_ORDERS).wait_for(messages=1)
    broker.queue(ORDERS).assert_has(messages=0)
    assert texts_in(shop.customer, DEAD_ORDERS) == [text]


def test_a_dead_letter_may_be_tried_again(shop: Shop, broker: BrokerFixture) -> None:
    shop.customer.send(DEAD_ORDERS, TEA.to_json())
    shop.open_prices()
    assert retry_dead(shop.customer) == 1
    assert shop.worker.handle_next(WAIT_S)
    assert shop.invoices() == [TEA_INVOICE]
    broker.queue(DEAD_ORDERS).assert_has(messages=0)


class Trouble:
    """A price list that brings about trouble when it is asked for the first time, and then gives the price."""

    def __init__(self, broker: BrokerFixture, cause: Callable[[], None]) -> None:
        self._orders = broker.queue(ORDERS)
        self._cause = cause
        self._caused = False

    def __call__(self, item: str) -> int:
        if not self._caused:
            self._caused = True
            self._cause()
            self._orders.wait_for(consumers=1)  # the worker is connected again
        return MENU[item]


def test_a_connection_that_breaks_costs_nothing(shop: Shop, broker: BrokerFixture) -> None:
    def cut() -> None:
        with broker.refusing_connections():
            broker.cut_connections()
            broker.queue(ORDERS).wait_for(consumers=0)

    shop.open_prices(Trouble(broker, cut))
    shop.order(TEA)
    assert shop.worker.handle_next(WAIT_S)
    assert shop.invoices() == []
    assert shop.worker.handle_next(WAIT_S)
    assert shop.invoices() == [TEA_INVOICE]
    broker.queue(ORDERS).assert_has(messages=0)


def test_a_broker_that_crashes_costs_nothing(durable_shop: Shop, durable_broker: BrokerFixture) -> None:
    def crash() -> None:
        durable_broker.crash()
        durable_broker.start()

    durable_shop.open_prices(Trouble(durable_broker, crash))
    durable_shop.order(TEA)
    assert durable_shop.worker.handle_next(WAIT_S)
    assert durable_shop.invoices() == []
    assert durable_shop.worker.handle_next(WAIT_S)
    crash()
    assert durable_shop.invoices() == [TEA_INVOICE]
    durable_broker.queue(ORDERS).assert_has(messages=0)


def test_each_part_has_a_command(broker: BrokerFixture, capsys: pytest.CaptureFixture[str]) -> None:
    login = ["--url", broker.openwire_url, "--user", broker.user, "--password", broker.password]

    def say(*words: str) -> str:
        run(parsed([*login, *words]))
        return capsys.readouterr().out

    assert "is with the broker" in say("order", "tea", "2")
    (order,) = broker.queue(ORDERS).texts
    with connect(broker.openwire_url, broker.user, broker.password) as connection:
        connection.send(INVOICES, TEA_INVOICE.to_json())
        connection.send(DEAD_ORDERS, TEA.to_json())
    assert say("invoices") == f"{TEA_INVOICE.to_json()}\n"
    assert say("dead") == f"{TEA.to_json()}\n"
    assert say("retry") == "tried again: 1\n"
    assert broker.queue(ORDERS).texts == [order, TEA.to_json()]
    assert say("dead") == "\n"


@pytest.mark.sources
def test_the_page_shows_what_is_in_the_files() -> None:
    files = [*(ROOT / "examples" / "tea_shop").glob("*.py"), Path(__file__)]
    sources = "".join(dedent(line) for file in files for line in file.read_text("utf-8").splitlines(keepends=True))
    page = (ROOT / "docs" / "example-tea-shop.md").read_text("utf-8")
    for block in re.findall(r"^```python\n(.*?)```", page, re.DOTALL | re.MULTILINE):
        assert "".join(dedent(line) for line in block.splitlines(keepends=True)) in sources
