"""The service that knows the prices, and how it is asked."""

from collections.abc import Callable

from delosmq.client import ClientConnection, ClientSession, JmsMessage
from examples.tea_shop.messages import PRICES

MENU = {"tea": 350, "cup": 900}


class NoPriceError(LookupError):
    """The service answers, and sells no such thing."""


def serve_prices(connection: ClientConnection, price_of: Callable[[str], int] = MENU.__getitem__) -> ClientSession:
    """Answers requests, until the session that it returns is closed."""
    session = connection.create_session()

    def answer(request: JmsMessage) -> None:
        try:
            connection.reply(request, {"cents": price_of(request.text)})
        except LookupError:
            connection.reply(request, {"unknown": True})

    session.create_consumer(PRICES).set_listener(answer)
    return session


def ask_price(connection: ClientConnection, item: str, timeout_s: float) -> int:
    """
    Raises:
        NoPriceError: the shop does not sell it.
        TimedOutError: the service is slow, or away.
    """
    reply = connection.request(PRICES, item, timeout_s=timeout_s).body
    if "cents" not in reply:
        raise NoPriceError(f"the shop sells no {item}")
    return int(reply["cents"])
