"""python -m examples.tea_shop COMMAND: the parts of the shop, each for a terminal of its own.

broker              the broker, on port 61616, with its messages in ./tea-shop-data
prices              the pricing service
worker              makes invoices of orders
order ITEM COUNT    sends an order
invoices            shows the invoices
dead                shows the orders that were given up
retry               has them tried again
"""

import argparse
import threading
import uuid
from contextlib import suppress
from pathlib import Path

import delosmq
from delosmq.client import ClientConnection
from examples.tea_shop.dead_letters import retry_dead, texts_in
from examples.tea_shop.messages import DEAD_ORDERS, INVOICES, ORDERS, Order
from examples.tea_shop.pricing import serve_prices
from examples.tea_shop.worker import OrderWorker, connect

CONFIG = Path(__file__).with_name("broker.xml")


def run_broker(user: str, password: str) -> None:
    with delosmq.Broker("tea-shop-data", config=CONFIG, user=user, password=password, http=False) as broker:
        print(f"the broker listens at {broker.openwire_url}; Ctrl-C ends it")
        threading.Event().wait()


def run_prices(connection: ClientConnection) -> None:
    with serve_prices(connection):
        print("the pricing service answers; Ctrl-C ends it")
        threading.Event().wait()


def run_worker(connection: ClientConnection) -> None:
    worker = OrderWorker(connection)
    print("the worker waits for orders; Ctrl-C ends it")
    while worker.handle_next():
        pass


def send_order(connection: ClientConnection, item: str, count: int) -> None:
    order = Order(uuid.uuid4().hex[:8], item, count)
    connection.send(ORDERS, order.to_json())
    print(f"order {order.order_id} is with the broker")


def run(arguments: argparse.Namespace) -> None:
    if arguments.command == "broker":
        run_broker(arguments.user, arguments.password)
        return
    retry_after_s = arguments.retry_after_s
    with connect(arguments.url, arguments.user, arguments.password, retry_after_s=retry_after_s) as connection:
        if arguments.command == "prices":
            run_prices(connection)
        elif arguments.command == "worker":
            run_worker(connection)
        elif arguments.command == "order":
            send_order(connection, arguments.item, arguments.count)
        elif arguments.command == "invoices":
            print(*texts_in(connection, INVOICES), sep="\n")
        elif arguments.command == "dead":
            print(*texts_in(connection, DEAD_ORDERS), sep="\n")
        else:
            print(f"tried again: {retry_dead(connection)}")


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("tea_shop", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", default="tcp://localhost:61616")
    parser.add_argument("--user", default="shop")
    parser.add_argument("--password", default="a secret")
    parser.add_argument("--retry-after-s", type=float, default=300, help="until a worker tries an order again")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in ("broker", "prices", "worker", "invoices", "dead", "retry"):
        commands.add_parser(name)
    order = commands.add_parser("order")
    order.add_argument("item")
    order.add_argument("count", type=int)
    return parser.parse_args(words)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        run(parsed())
