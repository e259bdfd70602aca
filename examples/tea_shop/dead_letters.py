"""Orders that were given up are looked at, and tried again."""

from delosmq.client import AckMode, ClientConnection
from examples.tea_shop.messages import DEAD_ORDERS, ORDERS


def texts_in(connection: ClientConnection, queue: str) -> list[str]:
    """What a queue holds; it stays where it is."""
    with connection.create_session() as session:
        return [message.text for message in session.create_browser(queue)]


def retry_dead(connection: ClientConnection) -> int:
    """Moves those that are there now back to the worker's queue, as new orders; how many these were."""
    count = 0
    with connection.create_session(AckMode.TRANSACTED) as session:
        orders = session.create_producer(ORDERS)
        wanted = len(texts_in(connection, DEAD_ORDERS))
        dead = session.create_consumer(DEAD_ORDERS)
        while count < wanted and (message := dead.receive(timeout_s=5)) is not None:
            orders.send(message.text)
            count += 1
        session.commit()
    return count
